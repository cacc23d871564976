// Measures ours and theirs in alternating pairs in one run, so that a noisy machine affects both.

/** Measures one side once, in the unit that the benchmark states. */
export type Side = () => Promise<number>

export interface Pair {
  readonly ours: number
  readonly theirs: number
  /** A value above 1 means that ours is better. */
  readonly ratio: number
}

/**
 * Measures both sides in pairs. The side that is measured first alternates from pair to pair. `better` is whether higher or lower
 * values are better.
 */
export async function measurePairs(
  count: number,
  ours: Side,
  theirs: Side,
  better: 'higher' | 'lower' = 'higher',
): Promise<readonly Pair[]> {
  const pairs: Pair[] = []
  for (let i = 0; i < count; i++) {
    const first = i % 2 === 0 ? await ours() : undefined
    const rival = await theirs()
    const own = first ?? (await ours())
    pairs.push({ ours: own, theirs: rival, ratio: better === 'higher' ? own / rival : rival / own })
  }
  return pairs
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2
}
