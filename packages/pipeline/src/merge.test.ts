// Tests how merged iterables are read and closed.
import { describe, expect, test } from 'vitest'
import { definePipeline, merge, runPipeline } from './index.ts'

/** Yields 0, 1, 2, … and records how many items were read and whether the iterable was closed. */
function counting() {
  const state = { read: 0, closed: false }
  function* source() {
    try {
      for (;;) yield state.read++
    } finally {
      state.closed = true
    }
  }
  return { state, source }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const read: Item[] = []
  for await (const item of items) read.push(item)
  return read
}

describe('merged iterables', () => {
  test('are all read to their end, whether they are asynchronous or not', async () => {
    const later = async function* () {
      yield* ['c', 'd']
    }
    expect((await all(merge(['a', 'b'], later()))).toSorted()).toEqual(['a', 'b', 'c', 'd'])
    expect(await all(merge())).toEqual([])
  })

  test('are refused if they cannot be iterated', async () => {
    await expect(merge([1], null as never).next()).rejects.toThrow('merge was called with null; expected an iterable')
  })

  test('are read ahead by one item each', async () => {
    const [one, two] = [counting(), counting()]
    const merged = merge(one.source(), two.source())
    await merged.next()
    await merged.next()
    expect(one.state.read + two.state.read).toBeLessThanOrEqual(3)
    await merged.return?.()
  })

  test('are closed when one of them throws, and the error is passed on', async () => {
    const { state, source } = counting()
    const failing = async function* () {
      yield -1
      throw new Error('no')
    }
    const read = all(merge(source(), failing()))
    await expect(read).rejects.toThrow('no')
    expect(state.closed).toBe(true)
  })

  test('are closed when a run that reads them fails or takes enough', async () => {
    const [one, two] = [counting(), counting()]
    const taken = definePipeline('taken')
      .source(() => merge(one.source(), two.source()))
      .take(3)
    expect(await runPipeline(taken)).toHaveLength(3)
    expect([one.state.closed, two.state.closed]).toEqual([true, true])
  })

  test('are closed although one of them is waiting for an item', async () => {
    const { state, source } = counting()
    const waiting: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: async () => ({ done: true, value: 0 }),
      }),
    }
    const merged = merge(source(), waiting)
    await merged.next()
    expect(await merged.return?.()).toEqual({ done: true, value: undefined })
    expect(state.closed).toBe(true)
  })

  test('report that one of them cannot be closed, after all of them were', async () => {
    const { state, source } = counting()
    const failing: Iterable<number> = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: false, value: 1 }),
        return: () => {
          throw new Error('not closed')
        },
      }),
    }
    const merged = merge(failing, source())
    await merged.next()
    await merged.next()
    await expect(merged.return?.()).rejects.toThrow('not closed')
    expect(state.closed).toBe(true)
  })
})
