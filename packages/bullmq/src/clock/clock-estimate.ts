// Estimates the offset of another clock from its answers. Decides which measurement to trust and when the skew is worth a log
// line.

/** One measurement of another clock against our monotonic one. */
export interface Estimate {
  /** The other clock's time minus ours. */
  readonly offsetMs: number
  /** The true offset differs from `offsetMs` by at most this much, which is half of the round trip. */
  readonly errorMs: number
  /** When it was measured, by our clock. */
  readonly at: number
}

/** When the error of an estimate is at most this, in ms, measuring rarely is enough. */
export const ESTIMATE_ENOUGH_MS = 50

/** If neither clock is set, the two drift apart by less than this share of the elapsed time. */
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

/** Reports when the skew has certainly become large, or small again. Between the two limits nothing changes. */
export function crossing(wasFar: boolean, skewMs: number, errorMs: number): 'far' | 'near' | undefined {
  const ms = Math.abs(skewMs)
  if (!wasFar && ms - errorMs > FAR_MS) return 'far'
  if (wasFar && ms + errorMs < NEAR_MS) return 'near'
  return undefined
}
