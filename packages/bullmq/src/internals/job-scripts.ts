// Writes the data that BullMQ's own transitions do not write, to a job or to its queue, over the connection that fetched the job.
import { BullpenError } from '@bullpen/contract'
import type { StoredSteps } from '@bullpen/engine/internal'
import type { IQueueBackend, Job, RedisClient, WorkerOptions } from 'bullmq'
import { THROTTLE, THROTTLE_MARK, UNTHROTTLE } from './throttle.ts'

/** The prefix of a finished step's field in the job's hash. The field holds the step's result as JSON. */
export const STEP_FIELD = 'once:'

/**
 * All scripts except the last two have KEYS: job, lock. ARGV[1] is the lock's token. A script writes nothing if the job is not
 * locked or is locked with another token.
 *
 * - bullpenKeepStep: ARGV: token, the fencing token, the step's field, its result. Returns what the field then holds, or nil if
 *   nothing was written. Checking the lock's token is not enough, because a plain BullMQ Worker may use the same token for the
 *   next attempt.
 * - bullpenReadSteps: ARGV is not used. Returns step, result, step, result, …
 * - bullpenThrottle, bullpenUnthrottle: see throttle.ts.
 */
const SCRIPTS = {
  bullpenKeepStep: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] or redis.call('HGET', KEYS[1], 'ats') ~= ARGV[2] then return false end
redis.call('HSETNX', KEYS[1], ARGV[3], ARGV[4])
return redis.call('HGET', KEYS[1], ARGV[3])`,
  bullpenReadSteps: `
local found = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, ${STEP_FIELD.length}) == '${STEP_FIELD}' then
    found[#found + 1] = string.sub(field, ${STEP_FIELD.length + 1})
    found[#found + 1] = redis.call('HGET', KEYS[1], field)
  end
end
return found`,
  bullpenThrottle: THROTTLE,
  bullpenUnthrottle: UNTHROTTLE,
}

/** How long after the end of a throttle its placeholder rate is removed, in ms. */
const UNTHROTTLE_AFTER_MS = 100
/** The longest delay that a Node timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1

const clientsWithScripts = new WeakSet<RedisClient>()

/** The results of the job's finished steps. They are fields of the job's own hash, so that they are removed with the job. */
export function stepsOf(job: Job, token: string): StoredSteps {
  return {
    async read() {
      const found = (await runStepScript('bullpenReadSteps', job, token)) as string[]
      const steps = new Map<string, string>()
      for (let i = 0; i < found.length; i += 2) steps.set(found[i] ?? '', found[i + 1] ?? '')
      return steps
    },
    async keep(step, result) {
      const kept = await runStepScript(
        'bullpenKeepStep',
        job,
        token,
        `${job.attemptsStarted}`,
        STEP_FIELD + step,
        result,
      )
      return typeof kept === 'string' ? kept : undefined
    },
  }
}

/** Once this resolves, no task of the job's queue is started for `ms`. A longer throttle extends a shorter one. */
export async function throttleQueue(job: Job, ms: number): Promise<void> {
  const keys = [`${job.queueQualifiedName}:limiter`, `${job.queueQualifiedName}:meta`]
  await run('bullpenThrottle', job, [...keys, `${ms}`, THROTTLE_MARK, hasOwnRate(job) ? '1' : ''])
  const release = (): void => {
    // If the worker has closed by then, the maintenance of another process removes the placeholder.
    run('bullpenUnthrottle', job, [...keys, THROTTLE_MARK]).catch(() => {})
  }
  setTimeout(release, Math.min(ms + UNTHROTTLE_AFTER_MS, MAX_TIMER_MS)).unref()
}

async function runStepScript(script: keyof typeof SCRIPTS, job: Job, ...args: string[]): Promise<unknown> {
  if ((await clientOf(job)) !== undefined) return run(script, job, [...jobKeys(job), ...args])
  throw new BullpenError(
    'invalid_configuration',
    `ctx.once stores its results in Redis, but the backend of queue '${job.queueName}' is not Redis`,
  )
}

async function run(script: keyof typeof SCRIPTS, job: Job, args: string[]): Promise<unknown> {
  const client = await clientOf(job)
  // BullMQ also has backends other than Redis. On those, a requeued job keeps no attempt record.
  if (client === undefined) return undefined
  if (!clientsWithScripts.has(client)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) client.defineCommand(name, { numberOfKeys: 2, lua })
    clientsWithScripts.add(client)
  }
  return client.runCommand(script, args)
}

function jobKeys({ queueQualifiedName, id }: Job): [string, string] {
  const key = `${queueQualifiedName}:${id}`
  return [key, `${key}:lock`]
}

/** `backend` is protected in BullMQ's types. BullMQ's own scripts get the client from it as well. */
export function backendOf(job: Job): IQueueBackend {
  return (job as unknown as { backend: IQueueBackend }).backend
}

function clientOf(job: Job): Promise<RedisClient> | undefined {
  return (backendOf(job) as { client?: Promise<RedisClient> }).client
}

/** Whether the Worker has a `limiter` option. That option uses the same counter, and a rate in `meta` would override it. */
function hasOwnRate(job: Job): boolean {
  // `queue`, which is the Worker here, is protected in BullMQ's types.
  const { queue } = job as unknown as { queue: { opts?: Partial<WorkerOptions> } }
  return queue.opts?.limiter !== undefined
}
