// Defines the error for a task that was not stored because its queue had reached a limit.
import { formatBytes } from '../definition/bytes.ts'
import { formatDuration } from '../definition/duration.ts'
import type { QueueLimitName } from '../definition/limits/queue-limits.ts'
import { BullpenError } from './errors.ts'

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
}

/**
 * Reports that a task was not stored because its queue is full. The code is `queue_full`. The same call can succeed as soon as tasks
 * have started or ended.
 */
export class QueueFullError extends BullpenError {
  readonly reached: ReachedLimit

  constructor(reached: ReachedLimit) {
    const { queue, limit, apiKeyName, max, found } = reached
    const place = apiKeyName === undefined ? 'is full' : `is full for API key '${apiKeyName}'`
    super(
      'queue_full',
      `queue '${queue}' ${place}: ${REASONS[limit](found, max)}; the task was not stored, so try again later`,
    )
    this.reached = reached
  }
}

const REASONS: Readonly<Record<QueueLimitName, (found: number, max: number) => string>> = {
  maxTasks: (found, max) =>
    `${found} ${found === 1 ? 'task is' : 'tasks are'} waiting or scheduled, and maxTasks is ${max}`,
  maxBytes: (found, max) =>
    `its unfinished tasks take ${found} bytes, and this task would exceed maxBytes, which is ${formatBytes(max)}`,
  maxUnfinishedTasks: (found, max) =>
    `${found} of its tasks ${found === 1 ? 'has' : 'have'} not ended, and maxUnfinishedTasks is ${max}`,
  maxAge: (found, max) =>
    `the next task has been waiting for ${formatDuration(found)}, and maxAge is ${formatDuration(max)}`,
}
