// Computes figures from the times of calls, in ms and in ascending order.

/** Returns the times after the first pause of at least `pauseMs`. */
export function sinceFirstPause(times: readonly number[], pauseMs: number): readonly number[] {
  const first = times.findIndex((at, i) => at - (times[i - 1] ?? at) >= pauseMs)
  return first === -1 ? [] : times.slice(first)
}

/** Returns the largest number of times within `withinMs`. */
export function mostWithin(times: readonly number[], withinMs: number): number {
  let [most, first] = [0, 0]
  for (const [i, at] of times.entries()) {
    while (at - (times[first] ?? at) >= withinMs) first += 1
    most = Math.max(most, i - first + 1)
  }
  return most
}
