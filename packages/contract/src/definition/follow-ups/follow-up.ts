// Defines follow-up tasks, which are enqueued because another task has ended.
import type { CallOptions } from '../../http/tasks/enqueue.ts'
import type { InputOf, TaskDefinition } from '../task-definition.ts'

/**
 * The options of a follow-up task. `delay` starts when the other task has ended. A follow-up has no start time, no unique key and no
 * durability.
 */
export interface FollowUpOptions extends Omit<CallOptions, 'runAt' | 'unique' | 'durability'>, FollowUps {}

/**
 * A task that is enqueued when another task has ended, exactly once for each end. The other task's queue and the follow-up's may
 * differ. It inherits the correlation id and is never refused because its queue is full.
 */
export interface FollowUp extends FollowUpOptions {
  /** The name of the follow-up's definition. */
  readonly task: string
  readonly input: unknown
}

/** The follow-ups of one task: at most 16, which together take at most 64 KiB. They may be nested up to 8 deep. */
export interface FollowUps {
  /** Enqueued when the task is completed. */
  readonly onSuccess?: readonly FollowUp[]
  /** Enqueued when the task is dead or expired, but not when an attempt fails that is retried, or when the task is cancelled. */
  readonly onFailure?: readonly FollowUp[]
  /** Enqueued when the task is completed, dead, cancelled or expired. */
  readonly onEnd?: readonly FollowUp[]
}

/**
 * Returns a follow-up for the options of an enqueue. The input is validated when the task is enqueued.
 *
 * @example
 * await client.enqueue(charge, { orderId }, { onSuccess: [followUp(sendReceipt, { orderId }, { delay: '5s' })] })
 */
export function followUp<D extends TaskDefinition>(
  definition: D,
  input: InputOf<D>,
  options: FollowUpOptions = {},
): FollowUp {
  return { ...options, task: definition.name, input }
}
