// Writes to a job what no transition of BullMQ's writes, over the connection that the job was taken by.
import type { Job, RedisClient } from 'bullmq'

/** KEYS: job, lock. ARGV: the lock's token, and more. Each writes nothing where another owner has the job, or nobody. */
const SCRIPTS = {
  bullpenKeepStacks:
    "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HSET', KEYS[1], 'stacktrace', ARGV[2]) end",
  bullpenTakeBackStart: "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HINCRBY', KEYS[1], 'ats', -1) end",
}

const prepared = new WeakSet<RedisClient>()

/** Replaces the stacks that are stored with the job. */
export function keepStacks(job: Job, token: string, stacks: readonly string[]): Promise<void> {
  return run('bullpenKeepStacks', job, token, JSON.stringify(stacks))
}

/** BullMQ counts a start when a job is taken; this one did not come to it. */
export function takeBackStart(job: Job, token: string): Promise<void> {
  return run('bullpenTakeBackStart', job, token)
}

async function run(script: keyof typeof SCRIPTS, job: Job, ...args: string[]): Promise<void> {
  const client = await clientOf(job)
  // BullMQ keeps jobs elsewhere than in Redis too; there a job that goes back leaves no record.
  if (client === undefined) return
  if (!prepared.has(client)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) client.defineCommand(name, { numberOfKeys: 2, lua })
    prepared.add(client)
  }
  const key = `${job.queueQualifiedName}:${job.id}`
  await client.runCommand(script, [key, `${key}:lock`, ...args])
}

/** The backend is protected in BullMQ's types: its own scripts reach it the same way. */
function clientOf(job: Job): Promise<RedisClient> | undefined {
  return (job as unknown as { backend: { client?: Promise<RedisClient> } }).backend.client
}
