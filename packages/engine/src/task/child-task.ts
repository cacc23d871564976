// Creates child tasks, which a handler enqueues. A child's id is derived from its parent's id, so that a retry of the parent does
// not enqueue the same child twice.
import {
  BullpenError,
  type Catalogue,
  type ChildOptions,
  type TaskDefinition,
  type TaskId,
  type TraceContext,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES, readTaskId } from '@bullpen/contract/internal'
import { keyProblem } from '@bullpen/contract/isolate'
import { inheritedLimits } from '../admission/api-key-limits.ts'
import { planFollowUps } from '../follow-ups/plan.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import { checkChild } from './check-call.ts'
import { digestOf, type Sha256 } from './digest.ts'
import { newTask } from './new-task.ts'

export interface Parent {
  readonly id: TaskId
  readonly correlationId: string | undefined
  readonly traceContext?: TraceContext | undefined
  readonly fencingToken: number
  /** The name of the API key whose request enqueued the parent, or the parent's own parent, if it is known. */
  readonly apiKeyName: string | undefined
}

const MAX_CHILD_KEY_LENGTH = 256

/**
 * Returns the id of a child task. The id is the same for a given parent, definition and child key, in every attempt and on every
 * machine. It contains the parent's creation time.
 */
export function childTaskId(
  parent: TaskId,
  { name, queue }: Pick<TaskDefinition, 'name' | 'queue'>,
  childKey: string,
  sha256: Sha256,
): TaskId {
  const digest = digestOf([parent, name, childKey], sha256)
  return createTaskId(queue, readTaskId(parent)?.createdAt ?? 0, digest.subarray(0, ID_RANDOM_BYTES))
}

/**
 * Creates a child task. `now` is in milliseconds since 1970. `definitions` contains those of its follow-ups.
 *
 * @throws BullpenError `invalid_input`, `invalid_request`, `invalid_duration`, `invalid_follow_up`, and what `definitions` throws.
 */
export function childTask(
  parent: Parent,
  definition: TaskDefinition,
  input: unknown,
  options: ChildOptions,
  now: number,
  sha256: Sha256,
  definitions: Pick<Catalogue, 'get'>,
): NewTask {
  const { childKey = '', ...call } = options
  const message = keyProblem(childKey, 0, MAX_CHILD_KEY_LENGTH)
  if (message !== undefined) {
    throw new BullpenError('invalid_request', `invalid childKey for child task: ${message}`, {
      errors: [{ pointer: '/childKey', message }],
    })
  }
  checkChild(definition, input, call)
  const id = childTaskId(parent.id, definition, childKey, sha256)
  // Only the attempts of this parent can have the child's id.
  const caller = { token: `${parent.fencingToken}` }
  const { apiKeyName, correlationId, traceContext } = parent
  const limits = apiKeyName === undefined ? undefined : inheritedLimits(definition)
  // The child's own children may be counted although the child is not.
  const passesOnApiKey = apiKeyName !== undefined
  const inherited = { correlationId, traceContext, apiKeyName, passesOnApiKey }
  const followUps = planFollowUps(call, { catalogue: definitions, ...inherited })
  return newTask(definition, input, call, { id, enqueuedAt: now, ...inherited, caller, limits, followUps })
}
