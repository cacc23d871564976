// Logs an event at most once per second, with the number of events that were suppressed since the last line.

const INTERVAL_MS = 1_000

export function throttledLog<T>(
  write: (event: T, suppressed: number) => void,
  now: () => number = Date.now,
): (event: T) => void {
  let nextAt = 0
  let suppressed = 0
  return (event) => {
    if (now() < nextAt) {
      suppressed++
      return
    }
    nextAt = now() + INTERVAL_MS
    write(event, suppressed)
    suppressed = 0
  }
}
