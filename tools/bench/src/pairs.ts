// Alternating pairs: ours and theirs measured in one run, so that a noisy machine is noisy for both.

/** Measures one side once, in whatever unit the bench states. */
export type Side = () => Promise<number>

export interface Pair {
  readonly ours: number
  readonly theirs: number
  /** Above 1, ours is better. */
  readonly ratio: number
}

/** Who goes first alternates from pair to pair. `better`: whether more or less of the unit is. */
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
