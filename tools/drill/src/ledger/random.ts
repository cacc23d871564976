// Randomness from a seed, so that a drill that failed can be run again (mulberry32).

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

/** That many moments of a span, in order; its first and its last tenth are left out, where there is little load. */
export function momentsIn(spanMs: number, count: number, random: Random): readonly number[] {
  return Array.from({ length: count }, () => spanMs * (0.1 + 0.8 * random())).sort((a, b) => a - b)
}

/** @throws RangeError when there is nothing to pick from. */
export function pick<T>(from: readonly T[], random: Random): T {
  const picked = from[Math.floor(random() * from.length)]
  if (picked === undefined) throw new RangeError('there is nothing to pick from')
  return picked
}
