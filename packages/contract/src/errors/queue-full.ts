// Defines the error for a task that was not stored because its queue had reached a limit.

import type { QueueLimitName } from '../definition/limits/queue-limits.ts'
import { formatBytes } from '../definition/units/bytes.ts'
import { formatDuration } from '../definition/units/duration.ts'
import { BullpenError } from './errors.ts'

/** How long a caller should wait before it repeats a call that a full queue has rejected, in ms. */
export const QUEUE_FULL_RETRY_AFTER_MS = 1_000

export interface ReachedLimit {
  readonly queue: string
  readonly limit: QueueLimitName
  /** The name of the API key if the limit belongs to it, and undefined if it belongs to the queue. */
  readonly apiKeyName?: string | undefined
  /** The limit's value: a number of tasks, a number of bytes, or a time in ms. */
  readonly max: number
  /**
   * The queue's current value, without the refused task. A number of tasks can exceed `max`, because some tasks, such as retries, are
   * never refused. A number of bytes can be below `max`, but the refused task would exceed it.
   */
  readonly found: number
  /** How many tasks an atomic request wants to store together, and undefined if the task does not belong to an atomic request. */
  readonly wanted?: number | undefined
}

/**
 * Reports that a task was not stored because its queue is full. The code is `queue_full`. The same call can succeed as soon as tasks
 * have started or ended.
 */
export class QueueFullError extends BullpenError {
  readonly reached: ReachedLimit

  constructor(reached: ReachedLimit) {
    const { queue, limit, apiKeyName, max, found, wanted = 1 } = reached
    const state = wanted === 1 ? 'is full' : `has no room for the request's ${wanted} tasks`
    const place = apiKeyName === undefined ? state : `${state} for API key '${apiKeyName}'`
    const stored = wanted === 1 ? 'the task was not stored' : 'no task was stored'
    super(
      'queue_full',
      `queue '${queue}' ${place}: ${REASONS[limit](found, max, wanted)}; ${stored}, so try again later`,
    )
    this.reached = reached
  }
}

const REASONS: Readonly<Record<QueueLimitName, (found: number, max: number, wanted: number) => string>> = {
  maxTasks: (found, max) =>
    `${found} ${found === 1 ? 'task is' : 'tasks are'} waiting or scheduled, and maxTasks is ${max}`,
  maxBytes: (found, max, wanted) =>
    `its unfinished tasks take ${found} bytes, and ${wanted === 1 ? 'this task' : 'these tasks'} would exceed maxBytes, which is ${formatBytes(max)}`,
  maxUnfinishedTasks: (found, max) =>
    `${found} of its tasks ${found === 1 ? 'has' : 'have'} not ended, and maxUnfinishedTasks is ${max}`,
  maxAge: (found, max) =>
    `the next task has been waiting for ${formatDuration(found)}, and maxAge is ${formatDuration(max)}`,
}
