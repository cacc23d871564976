// Counts what a load does, and how long each of its requests takes.

export interface Load {
  readonly tasks: number
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
  /** Discards everything that has been counted so far. */
  begin(): void
  /** Returns what has been counted since `begin`. */
  end(): Load
}

export function createMeter(): Meter {
  let times: number[] = []
  let tasks = 0
  let began = performance.now()
  return {
    count(sentAt, count) {
      times.push(performance.now() - sentAt)
      tasks += count
    },
    begin() {
      times = []
      tasks = 0
      began = performance.now()
    },
    end() {
      const seconds = (performance.now() - began) / 1_000
      const sorted = Float64Array.from(times).sort()
      const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN
      return { tasks, seconds, p50Ms: at(0.5), p99Ms: at(0.99) }
    },
  }
}
