// Counts times in buckets whose bounds grow by 1%, so that the times of several processes can be added up and still have percentiles.

/** The counts of the buckets. Buckets at the end that are empty may be missing. */
export type Buckets = readonly number[]

/** The upper bound of the first bucket, in ms. */
const FIRST_MS = 0.01
const GROWTH = Math.log(1.01)

export interface LatencyHistogram {
  /** Counts a time in ms. */
  count(ms: number): void
  /** Returns what has been counted since the last call. */
  take(): Buckets
}

export function createLatencyHistogram(): LatencyHistogram {
  let buckets: number[] = []
  return {
    count(ms) {
      const bucket = ms <= FIRST_MS ? 0 : Math.ceil(Math.log(ms / FIRST_MS) / GROWTH)
      while (buckets.length <= bucket) buckets.push(0)
      buckets[bucket] = (buckets[bucket] ?? 0) + 1
    },
    take() {
      const taken = buckets
      buckets = []
      return taken
    },
  }
}

export function mergeBuckets(all: readonly Buckets[]): Buckets {
  const length = Math.max(0, ...all.map((each) => each.length))
  return Array.from({ length }, (_, i) => all.reduce((sum, each) => sum + (each[i] ?? 0), 0))
}

/** Returns a percentile in ms, at most 1% too high, or NaN if nothing has been counted. `share` is 0.99 for the 99th percentile. */
export function percentileMs(buckets: Buckets, share: number): number {
  const total = buckets.reduce((sum, each) => sum + each, 0)
  let seen = 0
  for (const [i, count] of buckets.entries()) {
    seen += count
    if (count > 0 && seen >= total * share) return FIRST_MS * Math.exp(i * GROWTH)
  }
  return Number.NaN
}
