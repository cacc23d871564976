// Bounded parallelism: many items, a few at a time, and the first failure ends it.

/**
 * Runs `work` for every item, at most `limit` at a time. After the first failure nothing more is begun, the signal that
 * `work` is given aborts, what is running is waited for, and the failure is thrown.
 *
 * @throws the first failure of `work`, or the outer signal's reason.
 */
export async function forEachBounded<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T, signal: AbortSignal) => Promise<void>,
  outer?: AbortSignal,
): Promise<void> {
  const failed = new AbortController()
  const signal = outer === undefined ? failed.signal : AbortSignal.any([failed.signal, outer])
  const rest = items[Symbol.iterator]()
  const lane = async () => {
    for (let next = rest.next(); !next.done && !signal.aborted; next = rest.next()) {
      try {
        await work(next.value, signal)
      } catch (error) {
        failed.abort(error)
      }
    }
  }
  await Promise.all(Array.from({ length: limit }, lane))
  signal.throwIfAborted()
}
