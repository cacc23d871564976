// Counts what a load does, and how long each of its requests takes.

export interface Load {
  readonly tasks: number
  /** How many requests have been accepted, each for one or more tasks, and how many have been refused. */
  readonly requests: number
  readonly refused: number
  /** What the last refused request got, if any was refused. */
  readonly lastRefusal: string | undefined
  readonly seconds: number
  /** The median and the 99th percentile of the time from a request to its response, in ms. */
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface Meter {
  /**
   * Counts a request for this many tasks that was sent at `sentAt`, on the monotonic clock in ms, and whose response has just
   * arrived.
   */
  count(sentAt: number, tasks: number): void
  /** Counts a request that was refused. */
  refuse(response: string): void
  /** Discards everything that has been counted so far. */
  begin(): void
  /** Returns what has been counted since `begin`. */
  end(): Load
}

export function createMeter(): Meter {
  let times: number[] = []
  let tasks = 0
  let refused = 0
  let lastRefusal: string | undefined
  let began = performance.now()
  return {
    count(sentAt, count) {
      times.push(performance.now() - sentAt)
      tasks += count
    },
    refuse(response) {
      refused += 1
      lastRefusal = response
    },
    begin() {
      times = []
      tasks = 0
      refused = 0
      lastRefusal = undefined
      began = performance.now()
    },
    end() {
      const seconds = (performance.now() - began) / 1_000
      const sorted = Float64Array.from(times).sort()
      const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
      const counted = { tasks, requests: times.length, refused, lastRefusal }
      return { ...counted, seconds, p50Ms: at(0.5), p99Ms: at(0.99) }
    },
  }
}
