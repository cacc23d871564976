// Defines what a broker returns when a task is enqueued.
import type { TaskId } from './task-id.ts'

export const ENQUEUE_ACTIONS = [
  /** This call has stored the task. */
  'created',
  /** Another call had already stored a task with this id. It has not been changed. */
  'existing',
] as const

export type EnqueueAction = (typeof ENQUEUE_ACTIONS)[number]

export interface Enqueued {
  readonly id: TaskId
  /**
   * If the connection to Redis breaks before Redis's reply arrives, the broker sends the task again. The action is `created` if
   * either of the two has stored the task.
   */
  readonly action: EnqueueAction
  /**
   * Present if an earlier call with the same idempotency key has stored the task. The id and the action are then those of the
   * earlier call, and `status` is the status with which it stored the task.
   */
  readonly replayed?: { readonly status: 'waiting' | 'scheduled' }
}
