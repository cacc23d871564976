// What is known of another clock from what it said: which measurement to trust, and when its distance is worth a line.

/** Another clock's time at a moment of ours, which is monotonic. */
export interface Estimate {
  /** What to add to our time to have the other's. */
  readonly offsetMs: number
  /** The true offset is not farther from it than this: half of the round trip. */
  readonly errorMs: number
  /** When it was measured, by our clock. */
  readonly at: number
}

/** Good enough to measure seldom. */
export const ESTIMATE_ENOUGH_MS = 50

/** Two clocks that nobody sets run apart by less than this. */
const DRIFT = 1 / 5_000

const FAR_MS = 500
const NEAR_MS = 250

/** The new one where it is surer than what is left of the old one, or contradicts it: the other clock was set. */
export function surer(known: Estimate | undefined, sample: Estimate): Estimate {
  if (known === undefined) return sample
  const doubtMs = known.errorMs + (sample.at - known.at) * DRIFT
  const isContradicted = Math.abs(sample.offsetMs - known.offsetMs) > doubtMs + sample.errorMs
  return isContradicted || sample.errorMs <= doubtMs ? sample : known
}

/** Whether the skew has surely become large, or small again; between the two limits it stays what it was. */
export function crossing(wasFar: boolean, skewMs: number, errorMs: number): 'far' | 'near' | undefined {
  const ms = Math.abs(skewMs)
  if (!wasFar && ms - errorMs > FAR_MS) return 'far'
  if (wasFar && ms + errorMs < NEAR_MS) return 'near'
  return undefined
}
