// Writes to a job, and to its queue, what no transition of BullMQ's writes, over the connection that the job was taken by.
import type { Job, RedisClient, WorkerOptions } from 'bullmq'
import { HOLD, HOLD_MARK, RELEASE } from './hold.ts'

/**
 * The first two: KEYS: job, lock. ARGV: the lock's token, and more. Each writes nothing where another owner has the job, or
 * nobody.
 */
const SCRIPTS = {
  bullpenKeepStacks:
    "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HSET', KEYS[1], 'stacktrace', ARGV[2]) end",
  bullpenTakeBackStart: "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HINCRBY', KEYS[1], 'ats', -1) end",
  bullpenHold: HOLD,
  bullpenRelease: RELEASE,
}

/** After the end of a hold, in ms, what it left behind is removed. */
const RELEASED_AFTER_MS = 100
/** The most that a timer takes. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

const prepared = new WeakSet<RedisClient>()

/** Replaces the stacks that are stored with the job. */
export function keepStacks(job: Job, token: string, stacks: readonly string[]): Promise<void> {
  return run('bullpenKeepStacks', job, [...jobKeys(job), token, JSON.stringify(stacks)])
}

/** BullMQ counts a start when a job is taken; this one did not come to it. */
export function takeBackStart(job: Job, token: string): Promise<void> {
  return run('bullpenTakeBackStart', job, [...jobKeys(job), token])
}

/** From its answer on nothing of the job's queue is started for so long. Several extend it, none shortens it. */
export async function holdQueue(job: Job, ms: number): Promise<void> {
  const keys = [`${job.queueQualifiedName}:limiter`, `${job.queueQualifiedName}:meta`]
  await run('bullpenHold', job, [...keys, `${ms}`, HOLD_MARK, hasOwnRate(job) ? '1' : ''])
  const release = (): void => {
    // A worker that has closed meanwhile leaves it to the sweep.
    run('bullpenRelease', job, [...keys, HOLD_MARK]).catch(() => {})
  }
  setTimeout(release, Math.min(ms + RELEASED_AFTER_MS, LONGEST_TIMER_MS)).unref()
}

async function run(script: keyof typeof SCRIPTS, job: Job, args: string[]): Promise<void> {
  const client = await clientOf(job)
  // BullMQ keeps jobs elsewhere than in Redis too; there a job that goes back leaves no record.
  if (client === undefined) return
  if (!prepared.has(client)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) client.defineCommand(name, { numberOfKeys: 2, lua })
    prepared.add(client)
  }
  await client.runCommand(script, args)
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
  const { queue } = job as unknown as { queue: { opts?: Partial<WorkerOptions> } }
  return queue.opts?.limiter !== undefined
}
