// Durations as people write them ('250ms', '30s', '1.5h') and as machines count them (milliseconds).
import { BullpenError } from '../errors/errors.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

/** A length of time with its unit: `'250ms'`, `'30s'`, `'5m'`, `'1.5h'`, `'7d'`. Never negative, never zero, at most 365 days. */
export type Duration = `${number}${Unit}`

/** A limit that is either a duration or said to be absent. Leaving it out inherits the next wider default. */
export type Limit = Duration | 'none'

const MS: Readonly<Record<Unit, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const LONGEST_MS = 365 * MS.d

/**
 * Milliseconds in a duration, rounded to a whole millisecond.
 *
 * @throws BullpenError `invalid_duration` for anything but a positive number with a unit, and for more than 365 days.
 */
export function milliseconds(duration: string, setting = 'duration'): number {
  const match = typeof duration === 'string' ? FORM.exec(duration) : null
  if (match === null) {
    throw new BullpenError('invalid_duration', `${setting} is ${JSON.stringify(duration)}: ${hintFor(duration)}`)
  }
  const ms = Math.round(Number(match[1]) * MS[match[2] as Unit])
  if (ms === 0) {
    throw new BullpenError(
      'invalid_duration',
      `${setting} is '${duration}': zero means nothing here; the shortest is '1ms'`,
    )
  }
  if (ms > LONGEST_MS) {
    throw new BullpenError('invalid_duration', `${setting} is '${duration}': the longest duration is '365d'`)
  }
  return ms
}

/** As {@link milliseconds}, where `'none'` says that there is no limit and `undefined` that it is inherited. */
export function limitMs(limit: string | undefined, setting: string): number | 'none' | undefined {
  return limit === undefined || limit === 'none' ? limit : milliseconds(limit, setting)
}

function hintFor(text: string): string {
  if (/^-/.test(text)) return 'a duration is positive'
  if (/^\d+(\.\d+)?$/.test(text)) return `a duration has a unit; did you mean '${text}s' or '${text}ms'?`
  return "a duration is a number with one of the units ms, s, m, h, d, such as '30s'"
}

/** The shortest way to write a number of milliseconds: 90000 is `'90s'`, 1500 is `'1500ms'`. */
export function formatDuration(ms: number): Duration {
  const units: readonly Unit[] = ['d', 'h', 'm', 's']
  const unit = units.find((candidate) => ms >= MS[candidate] && ms % MS[candidate] === 0) ?? 'ms'
  return `${ms / MS[unit]}${unit}`
}
