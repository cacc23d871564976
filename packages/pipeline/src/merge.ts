// Combines several iterables into one that returns their items as they arrive.
import type { AnyIterable } from '@bullpen/contract'
import { described, EXPECTED_ITERABLE, isIterable } from '@bullpen/contract/internal'

type AnyIterator<Item> = Iterator<Item> | AsyncIterator<Item>

type Reading<Item> = {
  readonly iterator: AnyIterator<Item>
  readonly step: PromiseSettledResult<IteratorResult<Item>>
}

/**
 * Returns the items of all iterables as they arrive, and ends when all have ended. At most one item of each iterable is read ahead. If an
 * iterable throws, or the consumer leaves its loop, the others are closed.
 *
 * @example
 * definePipeline('both').source(merge(streamPipeline(first), streamPipeline(second)))
 */
export function merge<Item>(
  ...iterables: readonly AnyIterable<Item>[]
): AsyncIterableIterator<Item, undefined> & AsyncDisposable {
  /** The iterators that have not ended. */
  const open = new Set<AnyIterator<Item>>()
  /** The iterators whose next item has not been requested. */
  const idle: AnyIterator<Item>[] = []
  const ready: Reading<Item>[] = []
  let started = false
  let closed = false
  let wake = (): void => {}

  const start = (): void => {
    started = true
    for (const iterable of iterables) {
      if (!isIterable(iterable))
        throw new TypeError(`merge was called with ${described(iterable)}; ${EXPECTED_ITERABLE}`)
      const iterator = Symbol.asyncIterator in iterable ? iterable[Symbol.asyncIterator]() : iterable[Symbol.iterator]()
      open.add(iterator)
      idle.push(iterator)
    }
  }

  const read = async (iterator: AnyIterator<Item>): Promise<void> => {
    const [step] = await Promise.allSettled([(async () => iterator.next())()])
    ready.push({ iterator, step })
    wake()
  }

  /** Closes all open iterators, and throws the first error of one that could not be closed. */
  const close = async (): Promise<void> => {
    closed = true
    const left = [...open]
    open.clear()
    wake()
    const closings = await Promise.allSettled(left.map(async (iterator) => iterator.return?.()))
    for (const closing of closings) if (closing.status === 'rejected') throw closing.reason
  }

  const next = async (): Promise<IteratorResult<Item, undefined>> => {
    try {
      if (!started) start()
    } catch (error) {
      await close().catch(() => {})
      throw error
    }
    for (const iterator of idle.splice(0)) void read(iterator)
    while (!closed && open.size > 0) {
      const first = ready.shift()
      if (first === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      const { iterator, step } = first
      if (step.status === 'rejected') {
        open.delete(iterator)
        await close().catch(() => {})
        throw step.reason
      }
      if (!step.value.done) {
        idle.push(iterator)
        return { done: false, value: step.value.value }
      }
      open.delete(iterator)
    }
    return { done: true, value: undefined }
  }

  return {
    next,
    async return() {
      await close()
      return { done: true, value: undefined }
    },
    [Symbol.asyncDispose]: close,
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
