// Writes to a job, and to its queue, what no transition of BullMQ's writes, over the connection that the job was taken by.
import { BullpenError } from '@bullpen/contract'
import type { StoredSteps } from '@bullpen/engine/internal'
import type { Job, RedisClient, WorkerOptions } from 'bullmq'
import { THROTTLE, THROTTLE_MARK, UNTHROTTLE } from '../maintenance/throttle.ts'

/** Of a step's name, as a field of the job's own hash: what it holds is the result as JSON. */
export const STEP_FIELD = 'once:'

/**
 * But for bullpenHold and bullpenRelease: KEYS: job, lock. ARGV: the lock's token, and more. Each writes nothing where another
 * owner has the job, or nobody.
 * bullpenKeepStep (ARGV: token, the number of the start, field, result) returns what the field holds then, or nil: a Worker's
 * token may be that of its next start, too.
 * bullpenReadSteps (ARGV: token, not looked at) returns each step and its result, one after the other.
 */
const SCRIPTS = {
  bullpenKeepStacks:
    "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HSET', KEYS[1], 'stacktrace', ARGV[2]) end",
  bullpenTakeBackStart: "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HINCRBY', KEYS[1], 'ats', -1) end",
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
  bullpenHold: THROTTLE,
  bullpenRelease: UNTHROTTLE,
}

/** After the end of a hold, in ms, what it left behind is removed. */
const RELEASED_AFTER_MS = 100
/** The most that a timer takes. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

const prepared = new WeakSet<RedisClient>()

/** Replaces the stacks that are stored with the job. */
export function keepStacks(job: Job, token: string, stacks: readonly string[]): Promise<unknown> {
  return run('bullpenKeepStacks', job, [...jobKeys(job), token, JSON.stringify(stacks)])
}

/** BullMQ counts a start when a job is taken; this one did not come to it. */
export function takeBackStart(job: Job, token: string): Promise<unknown> {
  return run('bullpenTakeBackStart', job, [...jobKeys(job), token])
}

/** The results of the job's finished steps, in its own hash, so that they go when it goes. */
export function stepsOf(job: Job, token: string): StoredSteps {
  return {
    async read() {
      const found = (await runKeeping('bullpenReadSteps', job, token)) as string[]
      const steps = new Map<string, string>()
      for (let i = 0; i < found.length; i += 2) steps.set(found[i] ?? '', found[i + 1] ?? '')
      return steps
    },
    async keep(step, result) {
      const kept = await runKeeping('bullpenKeepStep', job, token, `${job.attemptsStarted}`, STEP_FIELD + step, result)
      return typeof kept === 'string' ? kept : undefined
    },
  }
}

/** From its answer on nothing of the job's queue is started for so long. Several extend it, none shortens it. */
export async function holdQueue(job: Job, ms: number): Promise<void> {
  const keys = [`${job.queueQualifiedName}:limiter`, `${job.queueQualifiedName}:meta`]
  await run('bullpenHold', job, [...keys, `${ms}`, THROTTLE_MARK, hasOwnRate(job) ? '1' : ''])
  const release = (): void => {
    // A worker that has closed meanwhile leaves it to the sweep.
    run('bullpenRelease', job, [...keys, THROTTLE_MARK]).catch(() => {})
  }
  setTimeout(release, Math.min(ms + RELEASED_AFTER_MS, LONGEST_TIMER_MS)).unref()
}

async function runKeeping(script: keyof typeof SCRIPTS, job: Job, ...args: string[]): Promise<unknown> {
  if ((await clientOf(job)) !== undefined) return run(script, job, [...jobKeys(job), ...args])
  throw new BullpenError('invalid_configuration', 'ctx.once keeps its results in Redis, and this queue is elsewhere')
}

async function run(script: keyof typeof SCRIPTS, job: Job, args: string[]): Promise<unknown> {
  const client = await clientOf(job)
  // BullMQ keeps jobs elsewhere than in Redis too; there a job that goes back leaves no record.
  if (client === undefined) return undefined
  if (!prepared.has(client)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) client.defineCommand(name, { numberOfKeys: 2, lua })
    prepared.add(client)
  }
  return client.runCommand(script, args)
}

function jobKeys({ queueQualifiedName, id }: Job): [string, string] {
  const key = `${queueQualifiedName}:${id}`
  return [key, `${key}:lock`]
}

/** The backend is protected in BullMQ's types: its own scripts reach it the same way. */
function clientOf(job: Job): Promise<RedisClient> | undefined {
  return (job as unknown as { backend: { client?: Promise<RedisClient> } }).backend.client
}

/** A Worker's own `limiter`: the same counter, and no rate of the queue may stand before it. */
function hasOwnRate(job: Job): boolean {
  // Its Worker is protected in BullMQ's types, as the backend is.
  const { queue } = job as unknown as { queue: { opts?: Partial<WorkerOptions> } }
  return queue.opts?.limiter !== undefined
}
