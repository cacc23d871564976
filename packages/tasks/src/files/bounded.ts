// Runs work with bounded parallelism and stops at the first failure.

/**
 * Runs `work` for every item, with at most `limit` items at a time. After the first failure, it does not start any more items. It
 * aborts the signal of the running ones, waits for them to end, and throws the failure.
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
  const remaining = items[Symbol.iterator]()
  const runNext = async () => {
    for (let next = remaining.next(); !next.done && !signal.aborted; next = remaining.next()) {
      try {
        await work(next.value, signal)
      } catch (error) {
        failed.abort(error)
      }
    }
  }
  await Promise.all(Array.from({ length: limit }, runNext))
  signal.throwIfAborted()
}
