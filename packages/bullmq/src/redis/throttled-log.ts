// Logs an event at most once per interval, with the number of events that were suppressed since the last line.

const INTERVAL_MS = 1_000

/**
 * Returns a function that passes an event to `write` at most once per interval. `intervalMs` is the minimum time between two
 * lines, in ms, and defaults to 1,000.
 */
export function throttledLog<T>(
  write: (event: T, suppressed: number) => void,
  now: () => number = Date.now,
  intervalMs = INTERVAL_MS,
): (event: T) => void {
  let nextAt = 0
  let suppressed = 0
  return (event) => {
    if (now() < nextAt) {
      suppressed++
      return
    }
    nextAt = now() + intervalMs
    write(event, suppressed)
    suppressed = 0
  }
}
