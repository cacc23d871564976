// Decides which measurement of another clock to trust, and when the skew between the clocks has to be logged.

/** One comparison of another clock with this process's monotonic clock. */
export interface Estimate {
  /** The other clock's time minus this process's. */
  readonly offsetMs: number
  /** The true offset differs from `offsetMs` by at most this much, which is half of the round trip. */
  readonly errorMs: number
  /** When the measurement was made, by this process's clock. */
  readonly at: number
}

/** The largest error, in ms, with which an estimate is good enough for rare measurements. */
export const ESTIMATE_ENOUGH_MS = 50

/** The two clocks drift apart by less than this share of the elapsed time, unless one of them is set. */
const DRIFT = 1 / 5_000

const FAR_MS = 500
const NEAR_MS = 250

/**
 * Returns the new sample if it is more certain than the aged estimate, or if it contradicts the estimate because a clock was set.
 * Otherwise returns the estimate.
 */
export function better(known: Estimate | undefined, sample: Estimate): Estimate {
  if (known === undefined) return sample
  const agedErrorMs = known.errorMs + (sample.at - known.at) * DRIFT
  const isContradicted = Math.abs(sample.offsetMs - known.offsetMs) > agedErrorMs + sample.errorMs
  return isContradicted || sample.errorMs <= agedErrorMs ? sample : known
}

/**
 * Returns 'far' once the skew has certainly become large, and 'near' once it has certainly become small again. Returns undefined
 * if neither is certain, for example if the skew is between the two limits.
 */
export function crossing(wasFar: boolean, skewMs: number, errorMs: number): 'far' | 'near' | undefined {
  const ms = Math.abs(skewMs)
  if (!wasFar && ms - errorMs > FAR_MS) return 'far'
  if (wasFar && ms + errorMs < NEAR_MS) return 'near'
  return undefined
}
