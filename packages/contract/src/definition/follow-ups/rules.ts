// Defines the follow-up tasks of a definition, which each of its tasks has: what they are enqueued for, and how their inputs are made.
import type { z } from 'zod'
import type { CallOptions } from '../../http/tasks/enqueue.ts'
import { type FollowUpKind, MAX_FOLLOW_UPS } from '../../task/follow-up.ts'
import type { TaskId } from '../../task/task-id.ts'
import type { InputOf, TaskDefinition } from '../task-definition.ts'

/** What the follow-ups of a success are made from. */
export interface CompletedTask<Input, Output> {
  readonly id: TaskId
  /** The input after the schema has applied its defaults and transforms. */
  readonly input: Input
  /** The output after the schema has applied its defaults and transforms, as JSON represents it: a Date is a string. */
  readonly output: Output
}

/** What the follow-ups of a failure or of any end are made from. They are made when the task is enqueued. */
export interface EnqueuedInput<Input> {
  /** The input as the caller sent it. */
  readonly input: Input
}

/** The options of a follow-up in a definition. `delay` starts when the other task has ended. */
export interface FollowUpRuleOptions<End> extends Omit<CallOptions, 'runAt' | 'unique' | 'durability'> {
  /** Returns whether the task has this follow-up. By default, every task has it. */
  readonly when?: (end: End) => boolean
}

/** A follow-up in a definition. */
export interface FollowUpRule {
  readonly task: () => TaskDefinition
  readonly input: (end: unknown) => unknown
  readonly when: ((end: unknown) => boolean) | undefined
  readonly call: CallOptions
}

/**
 * Returns a follow-up for a definition. Pass a function that returns the follow-up's definition if that definition comes later. `input`
 * must be a pure function.
 */
export type FollowUpMaker<End> = <D extends TaskDefinition>(
  definition: D | (() => D),
  input: (end: End) => InputOf<D>,
  options?: FollowUpRuleOptions<End>,
) => FollowUpRule

/** A definition's follow-ups, by the ends after which they are enqueued. */
export type FollowUpRules = Readonly<Record<FollowUpKind, readonly FollowUpRule[]>>

/** The settings of a definition that name its follow-ups. */
export interface FollowUpSettings<Input extends z.ZodType, Output extends z.ZodType> {
  /**
   * The tasks that are enqueued when a task is completed. Their inputs are made from its input and output, in the worker that completes
   * it, and are checked before the end is stored. If one is invalid, the attempt panics with the reason `invalid_follow_up`.
   *
   * @example
   * onSuccess: (followUp) => [followUp(receipt, ({ input, output }) => ({ to: input.email, total: output.total }))]
   */
  readonly onSuccess?: (
    followUp: FollowUpMaker<CompletedTask<z.output<Input>, z.output<Output>>>,
  ) => readonly FollowUpRule[]
  /**
   * The tasks that are enqueued when a task is dead or expired. Their inputs are made from the input when the task is enqueued, and are
   * stored with it. If one is invalid, the call is refused with `invalid_follow_up`.
   */
  readonly onFailure?: (followUp: FollowUpMaker<EnqueuedInput<z.input<Input>>>) => readonly FollowUpRule[]
  /** The tasks that are enqueued when a task is completed, dead, cancelled or expired. Otherwise like {@link onFailure}. */
  readonly onEnd?: (followUp: FollowUpMaker<EnqueuedInput<z.input<Input>>>) => readonly FollowUpRule[]
}

const KINDS = {
  onSuccess: 'success',
  onFailure: 'failure',
  onEnd: 'end',
} as const satisfies Record<keyof FollowUpSettings<z.ZodType, z.ZodType>, FollowUpKind>

/** The names of these settings. */
export const FOLLOW_UP_SETTINGS = Object.keys(KINDS) as readonly (keyof typeof KINDS)[]

/** Returns a definition's follow-ups, or undefined if there are none. Calls `fail`, which throws, if a setting is invalid. */
export function followUpRules<Input extends z.ZodType, Output extends z.ZodType>(
  settings: FollowUpSettings<Input, Output>,
  fail: (problem: string) => never,
): FollowUpRules | undefined {
  const { onSuccess, onFailure, onEnd } = settings
  if (onSuccess === undefined && onFailure === undefined && onEnd === undefined) return undefined
  const listOf = (setting: keyof typeof KINDS): readonly FollowUpRule[] => {
    const make = settings[setting] as ((followUp: FollowUpMaker<never>) => readonly FollowUpRule[]) | undefined
    if (make === undefined) return []
    const invalid = () =>
      fail(`invalid ${setting}; expected a function such as (followUp) => [followUp(next, ({ input }) => …)]`)
    if (typeof make !== 'function') return invalid()
    const rules = make(ruleMaker((problem) => fail(`${setting}: ${problem}`)))
    return Array.isArray(rules) && rules.every((rule) => typeof rule?.task === 'function') ? rules : invalid()
  }
  const rules = { success: listOf('onSuccess'), failure: listOf('onFailure'), end: listOf('onEnd') }
  const count = rules.success.length + rules.failure.length + rules.end.length
  if (count > MAX_FOLLOW_UPS) fail(`${count} follow-up tasks; a task may have at most ${MAX_FOLLOW_UPS}`)
  return count === 0 ? undefined : Object.freeze(rules)
}

function ruleMaker<End>(fail: (problem: string) => never): FollowUpMaker<End> {
  return (definition, input, { when, ...call } = {}) => {
    if (typeof input !== 'function')
      fail(`the input is ${JSON.stringify(input)}; expected a function that returns the input`)
    const refused = ['runAt', 'unique', 'durability', ...FOLLOW_UP_SETTINGS].find((option) => option in call)
    if (refused !== undefined) fail(`${refused} is not an option of a follow-up task in a definition`)
    const task: () => TaskDefinition = typeof definition === 'function' ? definition : () => definition
    // The caller of the functions passes what the kind of the rule requires.
    const erased = { input, when } as Pick<FollowUpRule, 'input' | 'when'>
    return Object.freeze({ task, ...erased, call })
  }
}
