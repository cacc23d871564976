// Parses how long the events of a queue's tasks are kept.
import { checkOptions, checkWhole, type Fail, isRecord } from './options.ts'
import { type Duration, milliseconds } from './units/duration.ts'

/** Which events of a queue's tasks are kept. An event is dropped as soon as either limit applies to it. */
export interface EventOptions {
  /** How long an event is kept, from '1m' to '7d'. Defaults to '1h'. The leader drops older events within a few seconds. */
  readonly age?: Duration
  /**
   * About how many events are kept, from 100 to 1,000,000. Defaults to 10,000. Redis may keep about 100 more. An event takes up to
   * 2 KiB, and usually about 150 bytes.
   */
  readonly count?: number
}

export interface KeptEvents {
  readonly ageMs: number
  readonly count: number
}

/** The limits of every queue that does not set any. */
export const DEFAULT_KEPT_EVENTS: KeptEvents = Object.freeze({ ageMs: milliseconds('1h'), count: 10_000 })

const MIN_AGE = '1m'
const MAX_AGE = '7d'
/** No queue that keeps events keeps fewer. */
export const MIN_KEPT_EVENTS = 100
const MAX_COUNT = 1_000_000

const SETTINGS: readonly string[] = ['age', 'count'] satisfies readonly (keyof EventOptions)[]

/**
 * Returns the limits that a queue's `events` setting describes, or false if the queue's tasks have no events. `fail` throws an
 * error that names the queue.
 *
 * @throws BullpenError `invalid_duration`.
 */
export function keptEvents(options: EventOptions | false, fail: Fail): KeptEvents | false {
  if (options === false) return false
  if (!isRecord(options)) {
    return fail(`events is ${JSON.stringify(options)}; expected false, or limits such as { age: '1h', count: 10_000 }`)
  }
  checkOptions('events', options, { settings: SETTINGS }, fail)
  const { age, count = DEFAULT_KEPT_EVENTS.count } = options
  const ageMs = age === undefined ? DEFAULT_KEPT_EVENTS.ageMs : milliseconds(age, 'events.age')
  if (ageMs < milliseconds(MIN_AGE) || ageMs > milliseconds(MAX_AGE)) {
    fail(`events.age is ${JSON.stringify(age)}; expected a duration from '${MIN_AGE}' to '${MAX_AGE}'`)
  }
  checkWhole('events.count', count, { min: MIN_KEPT_EVENTS, max: MAX_COUNT }, fail)
  return Object.freeze({ ageMs, count })
}
