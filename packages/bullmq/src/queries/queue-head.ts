// Reads the head of a queue: since when the task that starts next has been ready, and whether the queue is paused.
import type { QueueKeys } from '../keys.ts'
import { CLOSED_BY_OUTBOX } from '../outbox/outbox-steps.ts'
import type { Commander } from '../scripts/script.ts'
import { readTogether } from './read-together.ts'

export interface QueueHead {
  /**
   * Since when the waiting task that starts next has been ready, in ms since 1970, by Redis's clock. A task that has been started
   * before counts from its last start. Undefined if no task is waiting.
   */
  readonly readyAt: number | undefined
  /** Whether a command has paused the queue. */
  readonly isPaused: boolean
}

/** Takes constant time: one round trip, and one more if a task is waiting. */
export async function readQueueHead(redis: Commander, keys: QueueKeys): Promise<QueueHead> {
  const [meta, waiting, prioritized] = await readTogether(redis, (reads) => {
    reads.hmget(keys.meta, 'paused').last(keys.wait).lowest(keys.prioritized)
  })
  const [paused] = meta as (string | null)[]
  const isPaused = paused != null && paused !== CLOSED_BY_OUTBOX
  // BullMQ starts the tasks without a priority first.
  const id = (waiting as string | null) ?? (prioritized as string[])[0]
  return { readyAt: id === undefined ? undefined : await readyAt(redis, keys, id), isPaused }
}

/** Returns undefined if the task has been removed in the meantime. */
async function readyAt(redis: Commander, keys: QueueKeys, id: string): Promise<number | undefined> {
  const [timestamp, options, lastStart] = await redis.hmget(keys.job(id), 'timestamp', 'opts', 'processedOn')
  if (timestamp == null) return undefined
  if (lastStart != null) return Number(lastStart)
  // BullMQ keeps the delay in the job's options when the task has become ready.
  return Number(timestamp) + Number(/"delay":(\d+)/.exec(options ?? '')?.[1] ?? 0)
}
