// Limits how many lines a second the failed attempts of short tasks write, because an outage may fail thousands of them a second.
import type { Clock } from '@bullpen/engine/internal'

/** How many lines of one kind are written each second. */
export const FAILURE_LINES_PER_SECOND = 10

/** Returns whether another line of this kind may be written now. It remembers only the kinds of the current second. */
export function failureLimit(clock: Pick<Clock, 'monotonic'>): (kind: string) => boolean {
  const written = new Map<string, number>()
  let beganAt = Number.NEGATIVE_INFINITY
  return (kind) => {
    const now = clock.monotonic()
    if (now - beganAt >= 1_000) {
      beganAt = now
      written.clear()
    }
    const lines = (written.get(kind) ?? 0) + 1
    written.set(kind, lines)
    return lines <= FAILURE_LINES_PER_SECOND
  }
}
