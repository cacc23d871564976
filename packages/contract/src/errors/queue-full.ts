// Defines the error of a task that was not stored because its queue has reached a limit.
import type { QueueLimitName } from '../definition/queue-limits.ts'
import { BullpenError } from './errors.ts'

export interface ReachedLimit {
  readonly queue: string
  readonly limit: QueueLimitName
  /** The limit's value. */
  readonly max: number
  /** What the queue had instead. More than `max` if tasks that are never refused were added, such as retries. */
  readonly found: number
}

/** The code is `queue_full`. The task was not stored. The same call can succeed as soon as tasks have started or ended. */
export class QueueFullError extends BullpenError {
  readonly reached: ReachedLimit

  constructor(reached: ReachedLimit) {
    super('queue_full', messageOf(reached))
    this.reached = reached
  }
}

function messageOf({ queue, limit, max, found }: ReachedLimit): string {
  return `queue '${queue}' is full: ${FOUND[limit](found)}, and ${limit} is ${max}; the task was not stored, so try again later`
}

const FOUND: Readonly<Record<QueueLimitName, (found: number) => string>> = {
  maxTasks: (found) => `${found} ${found === 1 ? 'task is' : 'tasks are'} waiting or scheduled`,
}
