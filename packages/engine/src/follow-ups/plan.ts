// Plans the follow-up tasks of a call: checks each of them, and creates what is stored of it.
import { BullpenError, type Catalogue, type FollowUp, type FollowUps } from '@bullpen/contract'
import { errorAt, type FollowUpKind, MAX_FOLLOW_UPS, MAX_NESTED_FOLLOW_UPS } from '@bullpen/contract/internal'
import type { FollowUpTask, NewFollowUp } from '../ports/broker/new-task.ts'
import { type FollowUpOrigin, followUpTask } from './defined.ts'

/** The options of a call that name its follow-ups. */
export const FOLLOW_UP_OPTIONS = {
  onSuccess: 'success',
  onFailure: 'failure',
  onEnd: 'end',
} as const satisfies Record<keyof FollowUps, FollowUpKind>

const OPTIONS = Object.keys(FOLLOW_UP_OPTIONS) as readonly (keyof FollowUps)[]

/** Returns the queue of each follow-up that a call names, at any depth. @throws BullpenError `unknown_task`. */
export function followUpQueues(call: FollowUps, catalogue: Pick<Catalogue, 'get'>): readonly string[] {
  if (call.onSuccess === undefined && call.onFailure === undefined && call.onEnd === undefined) return NO_QUEUES
  return OPTIONS.flatMap((option) => call[option] ?? []).flatMap((each) => [
    catalogue.get(each.task).queue,
    ...followUpQueues(each, catalogue),
  ])
}

const NO_QUEUES: readonly string[] = []

interface PlanOrigin extends FollowUpOrigin {
  readonly catalogue: Pick<Catalogue, 'get'>
}

/**
 * Returns a call's follow-ups, or undefined if there are none. Most calls have none, which takes three property tests. Every
 * definition must be in the catalogue of this process, but no worker has to run it yet.
 *
 * @throws BullpenError `unknown_task`, `invalid_input`, `invalid_request` or `invalid_follow_up`, with a pointer such as
 * `/onSuccess/0/input/to`.
 */
export function planFollowUps(call: FollowUps, origin: PlanOrigin, depth = 1): readonly NewFollowUp[] | undefined {
  if (call.onSuccess === undefined && call.onFailure === undefined && call.onEnd === undefined) return undefined
  const planned = OPTIONS.flatMap((option) =>
    (call[option] ?? []).map((each, i): NewFollowUp => {
      try {
        return { on: FOLLOW_UP_OPTIONS[option], task: plannedTask(each, origin, depth) }
      } catch (error) {
        throw error instanceof BullpenError ? errorAt(error, `/${option}/${i}`) : error
      }
    }),
  )
  if (planned.length > MAX_FOLLOW_UPS) {
    throw new BullpenError(
      'invalid_request',
      `a task may have at most ${MAX_FOLLOW_UPS} follow-up tasks, got ${planned.length}; enqueue the others from the handler of one of them`,
    )
  }
  return planned.length === 0 ? undefined : planned
}

function plannedTask(given: FollowUp, origin: PlanOrigin, depth: number): FollowUpTask {
  const { task: name, input, onSuccess, onFailure, onEnd, ...call } = given
  if (depth > MAX_NESTED_FOLLOW_UPS) {
    const message = `follow-up tasks may be nested at most ${MAX_NESTED_FOLLOW_UPS} deep`
    throw new BullpenError('invalid_request', message)
  }
  const definition = origin.catalogue.get(name)
  const nested = planFollowUps({ onSuccess, onFailure, onEnd } as FollowUps, origin, depth + 1)
  const { catalogue: _, ...inherited } = origin
  return followUpTask(definition, input, call, inherited, nested)
}
