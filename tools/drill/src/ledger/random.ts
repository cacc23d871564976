// Generates random numbers from a seed (mulberry32), so that a failed drill can be run again.

export type Random = () => number

export function randomFrom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Returns the given number of times in a span, in order. The first and last tenth are excluded, because there is little load
 * then.
 */
export function momentsIn(spanMs: number, count: number, random: Random): readonly number[] {
  return Array.from({ length: count }, () => spanMs * (0.1 + 0.8 * random())).sort((a, b) => a - b)
}

/** @throws RangeError if the list is empty. */
export function pick<T>(from: readonly T[], random: Random): T {
  const picked = from[Math.floor(random() * from.length)]
  if (picked === undefined) throw new RangeError('cannot pick from an empty list')
  return picked
}

export function shuffled<T>(list: readonly T[], random: Random): readonly T[] {
  const drawn = list.map((value) => ({ value, at: random() })).toSorted((a, b) => a.at - b.at)
  return drawn.map(({ value }) => value)
}
