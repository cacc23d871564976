// Converts between instants and the wall-clock times of a time zone. A wall-clock time is in ms, as if the zone were UTC.

/** An offset is at most 14 hours, so a clock change is within this time before and after the instants that it affects, in ms. */
const REACH_MS = 15 * 3_600_000

export interface WallClock {
  /** Returns the wall-clock time at an instant. */
  at(instant: number): number
  /** Returns the latest time, give or take the size of a clock change, that the clock has shown until an instant. It is never too early. */
  latestUntil(instant: number): number
  /**
   * Returns the first instant at which the clock shows this time or a later one: the end of the gap if the clock skips the time, and
   * the first of two instants if it shows the time twice. A later time never has an earlier instant.
   */
  firstInstant(time: number): number
}

const clocks = new Map<string, WallClock>()

/** @throws RangeError if the time zone is not known. */
export function wallClock(timeZone: string): WallClock {
  const known = clocks.get(timeZone)
  if (known !== undefined) return known
  const clock = createWallClock(timeZone)
  clocks.set(timeZone, clock)
  return clock
}

function createWallClock(timeZone: string): WallClock {
  const format = new Intl.DateTimeFormat('en-US-u-ca-iso8601-hc-h23', {
    timeZone,
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  } as const)

  const offsetAt = (instant: number): number => {
    const second = Math.floor(instant / 1_000) * 1_000
    const parts = Object.fromEntries(format.formatToParts(second).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second: seconds = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, seconds) - second
  }

  /** Returns the instant between the two at which the offset changes, to the second. */
  const changeBetween = (before: number, after: number): number => {
    const offset = offsetAt(before)
    let [last, first] = [Math.floor(before / 1_000), Math.ceil(after / 1_000)]
    while (first - last > 1) {
      const middle = Math.floor((first + last) / 2)
      if (offsetAt(middle * 1_000) === offset) last = middle
      else first = middle
    }
    return first * 1_000
  }

  return {
    at: (instant) => instant + offsetAt(instant),
    latestUntil: (instant) => instant + Math.max(offsetAt(instant), offsetAt(instant - REACH_MS)),
    firstInstant(time) {
      const [before, after] = [offsetAt(time - REACH_MS), offsetAt(time + REACH_MS)]
      if (offsetAt(time - before) === before) return time - before
      if (offsetAt(time - after) === after) return time - after
      return changeBetween(time - after, time - before)
    },
  }
}
