// Durations as text, such as '250ms', '30s' or '1.5h', and their number of milliseconds.
import { BullpenError } from '../errors/errors.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

/** A positive length of time with a unit: `'250ms'`, `'30s'`, `'5m'`, `'1.5h'`, `'7d'`. From 1 ms to 365 days. */
export type Duration = `${number}${Unit}`

/** A duration, or `'none'` for no limit. Leaving a limit out inherits the next wider default. */
export type Limit = Duration | 'none'

const MS: Readonly<Record<Unit, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const MAX_MS = 365 * MS.d

/**
 * The number of milliseconds in a duration, rounded to a whole number. `setting` names the value in the error.
 *
 * @throws BullpenError `invalid_duration` unless it is a positive number with a unit, at most 365 days.
 */
export function milliseconds(duration: string, setting = 'duration'): number {
  return parse(duration, setting, { zero: "the shortest is '1ms'", example: "such as '30s'" })
}

/** Like {@link milliseconds}, for limits: `'none'` is no limit, `undefined` inherits one. */
export function limitMs(limit: string | undefined, setting: string): number | 'none' | undefined {
  if (limit === undefined || limit === 'none') return limit
  const zero = "use 'none' for no limit, or leave it out to inherit the default"
  return parse(limit, setting, { zero, example: "such as '30s', or 'none' for no limit" })
}

interface Hints {
  /** What to write instead of zero. */
  readonly zero: string
  readonly example: string
}

// Plain JavaScript may pass anything; the compiler accepts only texts.
function parse(given: unknown, setting: string, { zero, example }: Hints): number {
  const match = typeof given === 'string' ? FORM.exec(given) : null
  const ms = match === null ? Number.NaN : Math.round(Number(match[1]) * MS[match[2] as Unit])
  if (ms >= 1 && ms <= MAX_MS) return ms
  const hint =
    ms === 0 || isZero(given)
      ? zero
      : ms > MAX_MS
        ? "the longest is '365d'"
        : isNumber(given)
          ? `expected a duration with a unit, such as '${given}s' or '${given}ms'`
          : `expected a positive duration ${example}`
  throw new BullpenError('invalid_duration', `${setting} is ${JSON.stringify(given)}; ${hint}`)
}

function isZero(given: unknown): boolean {
  return given === 0 || given === '0'
}

function isNumber(given: unknown): boolean {
  return /^\d+(\.\d+)?$/.test(String(given))
}

/** The shortest text for a number of milliseconds: 90000 is `'90s'`, 1500 is `'1500ms'`. */
export function formatDuration(ms: number): Duration {
  const units: readonly Unit[] = ['d', 'h', 'm', 's']
  const unit = units.find((candidate) => ms >= MS[candidate] && ms % MS[candidate] === 0) ?? 'ms'
  return `${ms / MS[unit]}${unit}`
}
