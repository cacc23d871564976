// Estimates the offset of another clock from its answers: which measurement to trust, and when the skew is worth a log line.

/** One measurement of another clock against our monotonic one. */
export interface Estimate {
  /** Other clock minus ours. */
  readonly offsetMs: number
  /** The true offset differs by at most this: half of the round trip. */
  readonly errorMs: number
  /** When it was measured, by our clock. */
  readonly at: number
}

/** An estimate with a smaller error is good enough to measure rarely. */
export const ESTIMATE_ENOUGH_MS = 50

/** Two clocks that are not set drift apart by less than this share. */
const DRIFT = 1 / 5_000

const FAR_MS = 500
const NEAR_MS = 250

/** The new sample if it is more certain than the aged estimate, or contradicts it because a clock was set; else the estimate. */
export function better(known: Estimate | undefined, sample: Estimate): Estimate {
  if (known === undefined) return sample
  const agedErrorMs = known.errorMs + (sample.at - known.at) * DRIFT
  const isContradicted = Math.abs(sample.offsetMs - known.offsetMs) > agedErrorMs + sample.errorMs
  return isContradicted || sample.errorMs <= agedErrorMs ? sample : known
}

/** Whether the skew has certainly become large, or small again. Between the two limits nothing changes. */
export function crossing(wasFar: boolean, skewMs: number, errorMs: number): 'far' | 'near' | undefined {
  const ms = Math.abs(skewMs)
  if (!wasFar && ms - errorMs > FAR_MS) return 'far'
  if (wasFar && ms + errorMs < NEAR_MS) return 'near'
  return undefined
}
