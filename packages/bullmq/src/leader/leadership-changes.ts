// Counts how often the leadership of a namespace has passed to another process, from the fencing numbers that this process has seen.

/** How long a change counts, in ms. */
const WINDOW_MS = 600_000

export interface LeadershipChanges {
  /** How often another process became the leader. */
  readonly changes: number
  /** For how long this process has been watching, at most ten minutes, in ms. */
  readonly overMs: number
}

/** All times are on the monotonic clock. A process asks for the lease every few seconds, and each answer has the newest number. */
export function countLeadershipChanges(): {
  saw(fencing: number, at: number): void
  counted(now: number): LeadershipChanges
} {
  let newest: number | undefined
  let since: number | undefined
  let seen: { readonly at: number; readonly changes: number }[] = []
  return {
    saw(fencing, at) {
      since ??= at
      // The number grows by one with each leader.
      if (newest !== undefined && fencing > newest) seen.push({ at, changes: fencing - newest })
      newest = Math.max(newest ?? 0, fencing)
      seen = seen.filter((each) => each.at > at - WINDOW_MS)
    },
    counted(now) {
      const recent = seen.filter(({ at }) => at > now - WINDOW_MS)
      const overMs = since === undefined ? 0 : Math.min(WINDOW_MS, now - since)
      return { changes: recent.reduce((sum, { changes }) => sum + changes, 0), overMs }
    },
  }
}
