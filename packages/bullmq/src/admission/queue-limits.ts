// Encodes a queue's limits for the script that adds a task (../store/lua/includes/add/queue-limits.lua), and decodes its refusals.
import { type BullpenError, QueueFullError, type QueueLimitName, type QueueLimits } from '@bullpen/contract'
import { tooLargeForQueue } from '@bullpen/engine/internal'

/**
 * The reply if the task is refused. If `limit` is `maxBytes`, `needed` is the number of bytes that the task would take, together with the
 * tasks that the same call adds before it.
 */
export type FullReply = readonly ['full', limit: QueueLimitName, found: number, max: number, needed?: number]

/** Encodes the task's field, which is a single number for the many queues that have only a maximum number of bytes. */
export function encodeLimits({ maxTasks, maxBytes, maxAgeMs }: QueueLimits): string {
  if (maxTasks === undefined && maxAgeMs === undefined) return `${maxBytes ?? ''}`
  return `${maxTasks ?? ''},${maxBytes ?? ''},${maxAgeMs ?? ''}`
}

/** Returns the error for a refused task, which is `payload_too_large` if the task would not fit into an empty queue. */
export function decodeFull([, limit, found, max, needed = 0]: FullReply, queue: string): BullpenError {
  return limit === 'maxBytes' && needed > max
    ? tooLargeForQueue(queue, needed, max)
    : new QueueFullError({ queue, limit, found, max })
}
