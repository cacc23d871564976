// Defines the error of a task that was not stored because its queue has reached a limit.
import { formatDuration } from '../definition/duration.ts'
import type { QueueLimitName } from '../definition/queue-limits.ts'
import { BullpenError } from './errors.ts'

export interface ReachedLimit {
  readonly queue: string
  readonly limit: QueueLimitName
  /** The limit's value: a number of tasks, or a time in ms. */
  readonly max: number
  /** What the queue had instead. A number of tasks exceeds `max` if tasks that are never refused were added, such as retries. */
  readonly found: number
}

/** The code is `queue_full`. The task was not stored. The same call can succeed as soon as tasks have started or ended. */
export class QueueFullError extends BullpenError {
  readonly reached: ReachedLimit

  constructor(reached: ReachedLimit) {
    const { queue, limit, max, found } = reached
    super(
      'queue_full',
      `queue '${queue}' is full: ${REASONS[limit](found, max)}; the task was not stored, so try again later`,
    )
    this.reached = reached
  }
}

const REASONS: Readonly<Record<QueueLimitName, (found: number, max: number) => string>> = {
  maxTasks: (found, max) =>
    `${found} ${found === 1 ? 'task is' : 'tasks are'} waiting or scheduled, and maxTasks is ${max}`,
  maxAge: (found, max) =>
    `the next task has been waiting for ${formatDuration(found)}, and maxAge is ${formatDuration(max)}`,
}
