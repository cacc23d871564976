// Computes a figure from the times of calls, in ms and in ascending order.

/** Returns the largest number of times within `withinMs`. */
export function mostWithin(times: readonly number[], withinMs: number): number {
  let [most, first] = [0, 0]
  for (const [i, at] of times.entries()) {
    while (at - (times[first] ?? at) >= withinMs) first += 1
    most = Math.max(most, i - first + 1)
  }
  return most
}
