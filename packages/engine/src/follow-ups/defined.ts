// Makes the follow-ups that a definition has for each of its tasks.
//
// Those of a failure and of any end are made when the task is enqueued, because no process that knows the definition may be running
// when the task ends. Their own follow-ups of these kinds are made with them. Those of a success depend on the output, so the worker
// makes them just before it completes the task.
import {
  BullpenError,
  type CallOptions,
  type CompletedTask,
  type FollowUpRule,
  type TaskDefinition,
  type TaskId,
} from '@bullpen/contract'
import { MAX_FOLLOW_UPS } from '@bullpen/contract/internal'
import { inheritedLimits } from '../admission/api-key-limits.ts'
import type { FollowUpTask, NewFollowUp } from '../ports/broker/new-task.ts'
import { bareTask, type Origin } from '../task/bare-task.ts'
import { checkFollowUp } from '../task/check-call.ts'
import { messageOf } from '../verdict/thrown.ts'

/** How many tasks of one chain the follow-ups of definitions may enqueue. */
const MAX_DEPTH = 32

/** What a follow-up inherits from its task. `depth` is that of the task which is created. */
export type FollowUpOrigin = Pick<Origin, 'correlationId' | 'traceContext' | 'apiKeyName' | 'passesOnApiKey' | 'depth'>

/**
 * Returns the follow-ups of a task's definition for a failure and for any end, and then those of its call. Returns undefined if there are
 * none.
 *
 * @throws BullpenError `invalid_follow_up` if one of the definition's is invalid, or `invalid_request` if there are more than 16.
 */
export function withDefined(
  definition: TaskDefinition,
  input: unknown,
  called: readonly NewFollowUp[] | undefined,
  origin: FollowUpOrigin,
): readonly NewFollowUp[] | undefined {
  const { name, followUps } = definition
  if (followUps === undefined) return called
  const make = (on: 'failure' | 'end', setting: string): readonly NewFollowUp[] =>
    followUps[on].flatMap((rule, i) => {
      const task = definedTask(rule, { input }, origin, `${setting}/${i} of ${name}`)
      return task === undefined ? [] : [{ on, task }]
    })
  const all = [...make('failure', 'onFailure'), ...make('end', 'onEnd'), ...(called ?? [])]
  if (all.length > MAX_FOLLOW_UPS) {
    throw new BullpenError(
      'invalid_request',
      `a task may have at most ${MAX_FOLLOW_UPS} follow-up tasks; the call names ${called?.length ?? 0}, and the definition of ${name} has ${all.length - (called?.length ?? 0)}`,
    )
  }
  return all.length === 0 ? undefined : all
}

/**
 * Returns the follow-ups of a definition for the success of a task.
 *
 * @throws BullpenError `invalid_follow_up` if one is invalid, or if definitions have enqueued 32 tasks in a row, of which this
 * task is the last.
 */
export function successTasks(
  { name, followUps }: TaskDefinition,
  completed: CompletedTask<unknown, unknown>,
  origin: FollowUpOrigin,
): readonly FollowUpTask[] {
  const rules = followUps?.success ?? []
  return rules.flatMap((rule, i) => definedTask(rule, completed, origin, `onSuccess/${i} of ${name}`) ?? [])
}

/** Returns undefined if the task does not have this follow-up. `origin` is that of the task. */
function definedTask(
  { task, input, when, call }: FollowUpRule,
  end: object,
  origin: FollowUpOrigin,
  place: string,
): FollowUpTask | undefined {
  try {
    if (when?.(end) === false) return undefined
    const depth = (origin.depth ?? 0) + 1
    if (depth <= MAX_DEPTH) return followUpTask(task(), input(end), call, { ...origin, depth })
  } catch (cause) {
    throw new BullpenError('invalid_follow_up', `the follow-up ${place} is invalid: ${messageOf(cause)}`, { cause })
  }
  throw new BullpenError(
    'invalid_follow_up',
    `the follow-up ${place} would be number ${MAX_DEPTH + 1} in a chain of tasks that definitions have enqueued; at most ${MAX_DEPTH} are allowed; end the chain with \`when\`, or continue it with ctx.onSuccess`,
  )
}

/**
 * Creates a task that is enqueued when another one has ended. `called` are its own follow-ups, to which those of its definition are
 * added.
 *
 * @throws BullpenError `invalid_input` or `invalid_request`, which names the place of each invalid value, or `invalid_follow_up`.
 */
export function followUpTask(
  definition: TaskDefinition,
  input: unknown,
  call: CallOptions,
  origin: FollowUpOrigin,
  called?: readonly NewFollowUp[],
): FollowUpTask {
  checkFollowUp(definition, input, call)
  const { apiKeyName } = origin
  const {
    id: _id,
    enqueuedAt: _at,
    caller: _caller,
    idempotency: _idempotency,
    unique: _unique,
    durability: _durability,
    expiresAt,
    ...task
  } = bareTask(definition, input, call, {
    ...origin,
    id: '' as TaskId,
    enqueuedAt: 0,
    followUps: withDefined(definition, input, called, origin),
    limits: apiKeyName === undefined ? undefined : inheritedLimits(definition),
  })
  const expiresInMs = expiresAt === undefined ? undefined : expiresAt - (task.delayMs ?? 0)
  return { ...task, expiresInMs }
}
