// Parses durations such as '250ms', '30s' or '1.5h' into milliseconds, and formats them.
import { BullpenError } from '../../errors/errors.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

/** A length of time with a unit, from 1 ms to 365 days: `'250ms'`, `'30s'`, `'5m'`, `'1.5h'`, `'7d'`. */
export type Duration = `${number}${Unit}`

/** A duration, or `'none'` for no limit. A limit that is omitted is inherited from the next wider default. */
export type Limit = Duration | 'none'

const MS: Readonly<Record<Unit, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const MAX_MS = 365 * MS.d

/**
 * Converts a duration to milliseconds, rounded to a whole number. `setting` is how the error message refers to the value.
 *
 * @throws BullpenError `invalid_duration` unless `duration` is a positive number with a unit, at most 365 days.
 */
export function milliseconds(duration: string, setting = 'duration'): number {
  return parse(duration, setting, { zero: "the shortest is '1ms'", example: "such as '30s'" })
}

/** Like {@link milliseconds}, but for limits: `'none'` means no limit, and `undefined` inherits a default. */
export function limitMs(limit: string | undefined, setting: string): number | 'none' | undefined {
  if (limit === undefined || limit === 'none') return limit
  const zero = "use 'none' for no limit, or leave it out to inherit the default"
  return parse(limit, setting, { zero, example: "such as '30s', or 'none' for no limit" })
}

/** Like {@link milliseconds}, but accepts zero with a unit: `'0s'`. */
export function millisecondsOrZero(duration: string, setting: string): number {
  return /^0(ms|s|m|h|d)$/.test(duration) ? 0 : milliseconds(duration, setting)
}

/** The shortest and the longest duration that a setting accepts. */
export interface DurationRange {
  readonly min: Duration
  readonly max: Duration
}

/** Like {@link milliseconds}, but for settings with a range of their own. @throws BullpenError `invalid_duration`. */
export function millisecondsWithin(duration: string, setting: string, { min, max }: DurationRange): number {
  const expected = `expected a duration from '${min}' to '${max}'`
  const ms = parse(duration, setting, { zero: expected, tooLong: expected, example: "such as '30s'" })
  if (ms >= milliseconds(min) && ms <= milliseconds(max)) return ms
  throw invalidDuration(duration, setting, expected)
}

interface Hints {
  /** What to write instead of zero, for the error message. */
  readonly zero: string
  /** What to write instead of more than 365 days. By default, the message names that maximum. */
  readonly tooLong?: string
  readonly example: string
}

// Plain JavaScript may pass any value, although the compiler accepts only strings.
function parse(given: unknown, setting: string, { zero, tooLong = "the longest is '365d'", example }: Hints): number {
  const match = typeof given === 'string' ? FORM.exec(given) : null
  const ms = match === null ? Number.NaN : Math.round(Number(match[1]) * MS[match[2] as Unit])
  if (ms >= 1 && ms <= MAX_MS) return ms
  const hint =
    ms === 0 || isZero(given)
      ? zero
      : ms > MAX_MS
        ? tooLong
        : isNumber(given)
          ? `expected a duration with a unit, such as '${given}s' or '${given}ms'`
          : hasSeveralUnits(given)
            ? `expected a single number with a unit, such as '${sumOf(given)}'`
            : `expected a positive duration ${example}`
  throw invalidDuration(given, setting, hint)
}

function invalidDuration(given: unknown, setting: string, hint: string): BullpenError {
  return new BullpenError('invalid_duration', `${setting} is ${JSON.stringify(given)}; ${hint}`)
}

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g

/** Returns whether the text is a sequence of durations, such as `'1m30s'`. */
function hasSeveralUnits(given: unknown): given is string {
  return typeof given === 'string' && new RegExp(`^(?:${PART.source})+$`).test(given)
}

function sumOf(text: string): Duration {
  const sum = [...text.matchAll(PART)].reduce((ms, [, count, unit]) => ms + Number(count) * MS[unit as Unit], 0)
  return formatDuration(Math.round(Math.min(Math.max(sum, 1), MAX_MS)))
}

function isZero(given: unknown): boolean {
  return given === 0 || given === '0'
}

function isNumber(given: unknown): boolean {
  return /^\d+(\.\d+)?$/.test(String(given))
}

/** Formats milliseconds in the largest unit that gives a whole number: 90000 is `'90s'`, 1500 is `'1500ms'`. */
export function formatDuration(ms: number): Duration {
  const units: readonly Unit[] = ['d', 'h', 'm', 's']
  const unit = units.find((candidate) => ms >= MS[candidate] && ms % MS[candidate] === 0) ?? 'ms'
  return `${ms / MS[unit]}${unit}`
}
