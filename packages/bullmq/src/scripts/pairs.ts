// Decodes the flat lists in which Redis replies with pairs.

/** Returns the pairs of a list in which each name is followed by its value. */
export function pairsOf(flat: readonly string[]): (readonly [name: string, value: string])[] {
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? ''] as const] : []))
}
