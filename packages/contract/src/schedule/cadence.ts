// Defines when a schedule's tasks are due: at the times of a cron expression, or at a fixed interval.
import { type Duration, milliseconds } from '../definition/units/duration.ts'
import { cronProblem, neverRuns } from './ticks.ts'

export type CadenceOptions =
  | {
      /**
       * A cron expression with five fields, or with six if it starts with seconds: `'0 3 * * *'` is 03:00 every day, and `'30 0 3 *
       * * MON-FRI'` is 03:00:30 on every weekday. `L`, `W`, `#` and names such as `@daily` are accepted. If both the day of the
       * month and the day of the week are restricted, a day needs to match only one of them.
       */
      readonly cron: string
      /** The IANA time zone of the expression, such as `'Europe/Berlin'`. Defaults to `'UTC'`. */
      readonly timeZone?: string
      readonly every?: never
      readonly offset?: never
    }
  | {
      /** The interval between two ticks, at least '1s'. The ticks are the multiples of the interval since 1970, in UTC. */
      readonly every: Duration
      /** How much later each tick is. Must be shorter than `every`. With `every: '1h'`, '15m' means a quarter past each hour. */
      readonly offset?: Duration
      readonly cron?: never
      readonly timeZone?: never
    }

/** A cadence with its defaults filled in and its durations in ms. */
export type Cadence =
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number; readonly offsetMs: number }

/** The shortest interval, in ms. A cron expression cannot express a shorter one either. */
const MIN_EVERY_MS = 1_000

/** The options as a caller may pass them. Plain JavaScript and JSON may combine what the types exclude. */
export interface UncheckedCadence {
  readonly cron?: string | undefined
  readonly timeZone?: string | undefined
  readonly every?: string | undefined
  readonly offset?: string | undefined
}

/**
 * Returns the cadence for these options. If they are invalid, calls `fail`, which must throw, with the name of the option and what
 * is accepted.
 *
 * @throws BullpenError `invalid_duration`.
 */
export function cadenceOf(
  { cron, timeZone, every, offset }: UncheckedCadence,
  fail: (option: 'cron' | 'timeZone' | 'every' | 'offset', problem: string) => never,
): Cadence {
  if (cron === undefined && every === undefined)
    fail('cron', "missing; expected either cron, such as '0 3 * * *', or every")
  if (cron !== undefined) {
    if (every !== undefined) fail('every', 'use either cron or every, not both')
    if (offset !== undefined) fail('offset', 'requires every; to shift the ticks, change the cron expression')
    return cronCadence(cron, timeZone, fail)
  }
  if (timeZone !== undefined) fail('timeZone', 'requires cron; the ticks of an interval are in UTC')
  const everyMs = milliseconds(every ?? '', 'every')
  if (everyMs < MIN_EVERY_MS) fail('every', `expected at least '1s', got ${JSON.stringify(every)}`)
  const offsetMs = offset === undefined ? 0 : milliseconds(offset, 'offset')
  if (offsetMs >= everyMs) fail('offset', `expected a duration shorter than every ('${every}'), got '${offset}'`)
  return { everyMs, offsetMs }
}

function cronCadence(
  cron: unknown,
  timeZone: unknown = 'UTC',
  fail: (option: 'cron' | 'timeZone', problem: string) => never,
): Cadence {
  if (typeof cron !== 'string') fail('cron', `expected a string such as '0 3 * * *', got ${JSON.stringify(cron)}`)
  if (typeof timeZone !== 'string' || !isTimeZone(timeZone)) {
    return fail('timeZone', `expected an IANA time zone such as 'Europe/Berlin', got ${JSON.stringify(timeZone)}`)
  }
  const problem = cronProblem(cron)
  if (problem !== undefined) fail('cron', problem)
  const cadence = { cron, timeZone }
  if (neverRuns(cadence)) fail('cron', `${JSON.stringify(cron)} never matches any time`)
  return cadence
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
