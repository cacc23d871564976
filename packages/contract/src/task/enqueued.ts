// Defines what a broker returns when a task is enqueued.
import type { TaskStatus } from './states.ts'
import type { TaskId } from './task-id.ts'

export const ENQUEUE_ACTIONS = [
  /** This call has stored the task. */
  'created',
  /** Another call had already stored a task with this id or this unique key. That task has not been changed. */
  'existing',
  /** This call has stored the task, and has deleted another task that had its unique key. */
  'replaced',
  /** Another task has the unique key. This call has postponed the start of that task. */
  'extended',
] as const

export type EnqueueAction = (typeof ENQUEUE_ACTIONS)[number]

/** Returns whether a call with this result has stored a new task. */
export function isStored(action: EnqueueAction): boolean {
  return action === 'created' || action === 'replaced'
}

export interface Enqueued {
  /** The id of the new task, or of the other task that has its unique key. */
  readonly id: TaskId
  /**
   * If the connection to Redis breaks before Redis's reply arrives, the broker sends the task again. The action is `created` if
   * either of these two tries has stored the task.
   */
  readonly action: EnqueueAction
  /** The other task's status, if another task has the unique key. Undefined if that task has been deleted or does not exist. */
  readonly status?: TaskStatus | undefined
  /**
   * When the task is expected to start, in ms since 1970, rounded up to a second. The estimate is based on the backlog and on the
   * rate at which tasks start. It is never earlier than the time when a scheduled task is due. Undefined if no estimate is
   * possible, or if the action is `existing`.
   */
  readonly expectedStartAt?: number | undefined
  /**
   * Present if an earlier call with the same idempotency key was accepted. In that case, the id, the action and the
   * expected start come from the earlier call, and `status` is the task's status at the time of that call, or undefined if the task
   * had been deleted.
   */
  readonly replayed?: { readonly status: TaskStatus | undefined }
}
