// Defines what a broker returns when a task is enqueued.
import type { TaskId } from './task-id.ts'

export const ENQUEUE_ACTIONS = [
  /** The task has been stored. */
  'created',
  /** A task with this id was already stored and has not been changed. */
  'existing',
] as const

export type EnqueueAction = (typeof ENQUEUE_ACTIONS)[number]

export interface Enqueued {
  readonly id: TaskId
  /**
   * If the connection to Redis breaks before Redis's response arrives, the broker sends the task again. The action may then be
   * `existing` even though this call has stored the task.
   */
  readonly action: EnqueueAction
}
