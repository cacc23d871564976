// Compares what Prometheus has observed with the ledger: totals, and rates over the whole load.

/** A value at a time, in seconds since 1970. */
export interface RateSample {
  readonly at: number
  readonly perSecond: number
}

/**
 * Returns by how much the observed rates differ from the ledger's, in percent of the ledger's. Each sample is the rate over the `windowS`
 * seconds before it, and `timesMs` are when the events happened. The mean over all samples is compared, because a single sample depends on
 * when the processes were scraped. Infinite if there is nothing to compare.
 */
export function rateErrorPercent(samples: readonly RateSample[], timesMs: readonly number[], windowS: number): number {
  const real = samples.map(({ at }) => {
    const [from, to] = [(at - windowS) * 1_000, at * 1_000]
    return timesMs.filter((time) => time > from && time <= to).length / windowS
  })
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const expected = mean(real)
  const error = Math.abs(mean(samples.map(({ perSecond }) => perSecond)) - expected) / expected
  return Number.isFinite(error) ? Math.round(1_000 * error) / 10 : Number.POSITIVE_INFINITY
}
