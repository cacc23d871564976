// Computes percentiles.

export function p99(values: readonly number[]): number | undefined {
  return rank(values, 0.99)
}

/** Uses the nearest-rank method: returns the smallest value that this share of the values does not exceed. */
export function rank(values: readonly number[], share: number): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1]
}
