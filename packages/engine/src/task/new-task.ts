// Creates a new task for the broker, with the follow-ups of its definition.
import type { CallOptions, TaskDefinition } from '@bullpen/contract'
import { withDefined } from '../follow-ups/defined.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import { bareTask, type Origin } from './bare-task.ts'

/**
 * Creates a new task. The input is stored as given and parsed by the worker, so validate it before calling this function. The
 * definition's follow-ups of a failure and of any end are made here, and come before those of the call.
 *
 * @throws BullpenError `invalid_duration`, or `invalid_request` if a short task has a timeout, if the timeouts contradict each
 * other, if the call has both a delay and a start time, if its retry settings are outside of the definition's bounds, or if
 * `onConflict` is 'extend' and the call has no delay or start time. `invalid_follow_up` if a follow-up of the definition is invalid.
 */
export function newTask(definition: TaskDefinition, input: unknown, call: CallOptions, origin: Origin): NewTask {
  const task = bareTask(definition, input, call, origin)
  if (definition.followUps === undefined) return task
  return { ...task, followUps: withDefined(definition, input, origin.followUps, origin) }
}
