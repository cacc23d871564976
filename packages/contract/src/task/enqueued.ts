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
}
