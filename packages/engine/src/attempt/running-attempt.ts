// Defines what the parts of an attempt that name other tasks know of the attempt, and how they find a definition.
import { type AttemptState, BullpenError, type TaskDefinition } from '@bullpen/contract'
import type { FetchedTask } from '../ports/consumer.ts'
import type { Parent } from '../task/child-task.ts'

export interface RunningAttempt extends Parent {
  readonly state: AttemptState
  readonly fetched: FetchedTask
}

export interface Definitions {
  get(task: string): { readonly definition: TaskDefinition } | undefined
}

/**
 * Returns the definition with this name, which a handler needs to `act`, such as 'enqueue'.
 *
 * @throws BullpenError `wrong_state` if the attempt has ended, or `unknown_task` if the worker's catalogue has no such definition.
 */
export function definitionFor(
  act: string,
  { id, state }: RunningAttempt,
  definitions: Definitions,
  name: string,
): TaskDefinition {
  if (state !== 'IN_PROCESS') {
    throw new BullpenError('wrong_state', `${id} cannot ${act} ${name}: the attempt has already ended as ${state}`)
  }
  const definition = definitions.get(name)?.definition
  if (definition !== undefined) return definition
  throw new BullpenError(
    'unknown_task',
    `${id} cannot ${act} ${name}: this worker's catalogue does not contain a task with this name`,
  )
}
