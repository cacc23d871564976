// Defines schedules, which enqueue a task at regular times.

import { suggestion } from '../definition/nearest.ts'
import type { InputOf, TaskDefinition } from '../definition/task-definition.ts'
import { type Duration, milliseconds } from '../definition/units/duration.ts'
import { BullpenError } from '../errors/errors.ts'
import { bodyErrors, fieldErrorText } from '../errors/field-error.ts'
import { refusePrototypeKeys } from '../errors/prototype-keys.ts'
import { scheduleRequestSchema } from '../http/schedules.ts'
import type { CallOptions } from '../http/tasks/enqueue.ts'
import type { Cadence, CadenceOptions } from './cadence.ts'
import { cadenceOf } from './cadence.ts'
import type { CatchUp, Overlap } from './schedule-policies.ts'

/** The options of the tasks that a schedule enqueues. */
export type ScheduledTaskOptions = Omit<CallOptions, 'delay' | 'runAt' | 'unique' | 'durability'>

/** How a schedule's ticks become tasks. */
export interface SchedulePolicies {
  /** What happens if the previous run has not ended at a tick. Defaults to 'skip'. */
  readonly overlap?: Overlap
  /** What happens to missed ticks, which are those that were not handled within ten seconds. Defaults to 'one'. */
  readonly catchUp?: CatchUp
  /**
   * Enqueues each task at a random time up to this long after its tick, but before the next tick, so that many schedules do not start
   * at the same moment. By default, there is no delay.
   */
  readonly jitter?: Duration
}

export type ScheduleOptions<D extends TaskDefinition> = CadenceOptions &
  SchedulePolicies &
  ScheduledTaskOptions & {
    /** 1 to 54 characters: a lower-case letter followed by lower-case letters, digits, dots, hyphens and underscores. */
    readonly name: string
    readonly task: D
    readonly input: InputOf<D>
  }

/** The result of {@link defineSchedule}: frozen, with defaults filled in and durations in milliseconds. */
export interface ScheduleDefinition {
  readonly kind: 'schedule'
  readonly name: string
  readonly task: TaskDefinition
  readonly input: unknown
  readonly cadence: Cadence
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  readonly jitterMs: number
  readonly call: ScheduledTaskOptions
}

const FIELDS = Object.keys(scheduleRequestSchema.shape)

/**
 * Defines a schedule for a catalogue. The API and the workers store the catalogue's schedules when they start. This function
 * is pure: it does not register anything.
 *
 * @example
 * const nightly = defineSchedule({
 *   name: 'nightly-report',
 *   task: report,
 *   input: { kind: 'daily' },
 *   cron: '0 3 * * *',
 *   timeZone: 'Europe/Berlin',
 * })
 * @throws BullpenError `invalid_definition` or `invalid_duration`. The message names the schedule, the setting and what is accepted.
 */
export function defineSchedule<D extends TaskDefinition>(options: ScheduleOptions<D>): ScheduleDefinition {
  const { name, task } = options
  const fail = (problem: string): never => {
    throw new BullpenError('invalid_definition', `schedule ${JSON.stringify(name)}: ${problem}`)
  }
  if (typeof task?.name !== 'string' || typeof task.queue !== 'string') {
    return fail('task is not a definition; expected the result of defineTask')
  }
  const unknown = Object.keys(options).find((setting) => !FIELDS.includes(setting))
  if (unknown !== undefined) fail(`${unknown} is not a setting of a schedule${suggestion(unknown, FIELDS)}`)
  try {
    return scheduleFrom({ ...options, task: task.name }, task)
  } catch (error) {
    if (!(error instanceof BullpenError)) throw error
    return fail(error.message)
  }
}

/**
 * Checks a schedule's settings and input, and fills in the defaults.
 *
 * @throws BullpenError `invalid_request`, `invalid_input` or `invalid_duration`, with the place of each invalid value.
 */
export function scheduleFrom(unchecked: object, task: TaskDefinition): ScheduleDefinition {
  refusePrototypeKeys(unchecked)
  const parsed = scheduleRequestSchema.safeParse(unchecked)
  if (!parsed.success) {
    const errors = bodyErrors(parsed.error)
    throw new BullpenError('invalid_request', errors.map(fieldErrorText).join('; '), { errors })
  }
  const { name, task: _, input, cron, timeZone, every, offset, ...rest } = parsed.data
  const { overlap = 'skip', catchUp = 'one', jitter, ...call } = rest
  const cadence = cadenceOf({ cron, timeZone, every, offset }, (option, message) => {
    throw new BullpenError('invalid_request', `/${option}: ${message}`, {
      errors: [{ pointer: `/${option}`, message }],
    })
  })
  const checked = task.input.safeParse(input)
  if (!checked.success) {
    const errors = bodyErrors(checked.error, ['input'])
    const places = errors.map(fieldErrorText).join('; ')
    throw new BullpenError('invalid_input', `the input does not match the schema of ${task.name}: ${places}`, {
      errors,
    })
  }
  const jitterMs = jitter === undefined ? 0 : milliseconds(jitter, 'jitter')
  const definition = { kind: 'schedule', name, task, input, cadence, overlap, catchUp, jitterMs } as const
  return Object.freeze({ ...definition, call: Object.freeze(call as ScheduledTaskOptions) })
}
