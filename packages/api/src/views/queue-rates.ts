// Measures how many tasks enter and leave a queue per second, from readings of its counters.

/** `at` is in ms, on a monotonic clock. */
export interface QueueReading {
  readonly at: number
  /** How many tasks were ever added. */
  readonly accepted: number
  /** How often a task has ended, or was deleted before its end. */
  readonly ended: number
}

export interface QueueRates {
  /** Tasks per second. */
  readonly in: number
  readonly out: number
  readonly overMs: number
}

const SHORTEST_MS = 1_000
const LONGEST_MS = 60_000

/**
 * Returns the rates between the oldest reading of the last minute and the newest one, or undefined if they are less than a second
 * apart. `readings` begins with the oldest.
 */
export function ratesOf(readings: readonly QueueReading[]): QueueRates | undefined {
  const newest = readings.at(-1)
  const oldest = newest && readings.find(({ at }) => at >= newest.at - LONGEST_MS)
  if (newest === undefined || oldest === undefined || newest.at - oldest.at < SHORTEST_MS) return undefined
  const perSecond = (after: number, before: number): number =>
    Math.round((Math.max(0, after - before) * 100_000) / (newest.at - oldest.at)) / 100
  return {
    in: perSecond(newest.accepted, oldest.accepted),
    out: perSecond(newest.ended, oldest.ended),
    overMs: Math.round(newest.at - oldest.at),
  }
}

/** Adds a reading, and keeps those of the last minute, at most about one for each second. */
export function withReading(readings: readonly QueueReading[], reading: QueueReading): readonly QueueReading[] {
  const recent = readings.filter(({ at }) => at >= reading.at - LONGEST_MS)
  const before = recent.at(-2)
  const isSoon = before !== undefined && reading.at - before.at < SHORTEST_MS
  return [...(isSoon ? recent.slice(0, -1) : recent), reading]
}
