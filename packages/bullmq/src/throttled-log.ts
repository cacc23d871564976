// Says a thing at most once a second, with the number of times it was left unsaid in between.

const INTERVAL_MS = 1_000

export function throttledLog<T>(
  say: (what: T, suppressed: number) => void,
  now: () => number = Date.now,
): (what: T) => void {
  let next = 0
  let suppressed = 0
  return (what) => {
    if (now() < next) {
      suppressed++
      return
    }
    next = now() + INTERVAL_MS
    say(what, suppressed)
    suppressed = 0
  }
}
