// Estimates another clock's offset from its readings, and decides which measurement to trust and when the skew is worth a log
// line.

/** One measurement of another clock against our monotonic clock. */
export interface Estimate {
  /** The other clock's time minus ours. */
  readonly offsetMs: number
  /** The true offset differs from `offsetMs` by at most this much, which is half of the round trip. */
  readonly errorMs: number
  /** When it was measured, by our clock. */
  readonly at: number
}

/** The error, in ms, at which an estimate is good enough to measure rarely. */
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
 * Returns 'far' or 'near' once the skew has certainly become large, or small again. Returns undefined if nothing has changed, as
 * between the two limits.
 */
export function crossing(wasFar: boolean, skewMs: number, errorMs: number): 'far' | 'near' | undefined {
  const ms = Math.abs(skewMs)
  if (!wasFar && ms - errorMs > FAR_MS) return 'far'
  if (wasFar && ms + errorMs < NEAR_MS) return 'near'
  return undefined
}
