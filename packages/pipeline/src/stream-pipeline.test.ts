// Tests how a streamed run starts, ends and reports its errors.
import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { definePipeline, streamPipeline } from './index.ts'

const DONE = { done: true, value: undefined }
const item = (value: unknown) => ({ done: false, value })

/** A source whose items come when the test says so. */
function manual() {
  const state = { opened: false, closed: false }
  const items: PromiseWithResolvers<number>[] = [0, 1, 2].map(() => Promise.withResolvers<number>())
  async function* source() {
    state.opened = true
    try {
      for (const { promise } of items) yield await promise
    } finally {
      state.closed = true
    }
  }
  return { state, source, send: (index: number) => items[index]?.resolve(index) }
}

describe('a streamed pipeline', () => {
  test('starts when its first result is requested', async () => {
    const { state, source, send } = manual()
    const results = streamPipeline(definePipeline('p').source(source))
    expect(state.opened).toBe(false)
    send(0)
    expect(await results.next()).toEqual(item(0))
    expect(state.opened).toBe(true)
    send(1)
    await results.return?.()
    expect(state.closed).toBe(true)
  })

  test('serves several requests at a time in order, and ends for all of them', async () => {
    const results = streamPipeline(definePipeline('p').source([1, 2]))
    const all = await Promise.all([results.next(), results.next(), results.next(), results.next()])
    expect(all).toEqual([item(1), item(2), DONE, DONE])
    expect(await results.next()).toEqual(DONE)
  })

  test('ends a request that waits when it is returned', async () => {
    const { state, source, send } = manual()
    const results = streamPipeline(definePipeline('p').source(source))
    const waiting = results.next()
    const returned = results.return?.()
    send(0)
    expect(await waiting).toEqual(DONE)
    expect(await returned).toEqual(DONE)
    expect(state.closed).toBe(true)
    expect(await results.next()).toEqual(DONE)
  })

  test('that is returned before it has started calls nothing', async () => {
    const { state, source } = manual()
    const results = streamPipeline(definePipeline('p').source(source))
    expect(await results.return?.()).toEqual(DONE)
    expect(await results.next()).toEqual(DONE)
    expect(state.opened).toBe(false)
  })

  test('is stopped at the end of the block that declares it with `await using`', async () => {
    const { state, source, send } = manual()
    {
      await using results = streamPipeline(definePipeline('p').source(source))
      send(0)
      expect(await results.next()).toEqual(item(0))
      send(1)
    }
    expect(state.closed).toBe(true)
  })

  test('rejects once with the error of the run, and has ended then', async () => {
    const pipeline = definePipeline('p')
      .source([1, 2])
      .map((n) => (n === 2 ? Promise.reject(new Error('no')) : n))
    const results = streamPipeline(pipeline)
    expect(await results.next()).toEqual(item(1))
    await expect(results.next()).rejects.toMatchObject({ code: 'stage_failed', position: '1' })
    expect(await results.next()).toEqual(DONE)
    expect(await results.return?.()).toEqual(DONE)
  })

  test('returns all results before the error of its source', async () => {
    const pipeline = definePipeline('p')
      .source(function* () {
        yield* [1, 2]
        throw new Error('no')
      })
      .map(async (n) => n, { concurrency: 5 })
    const seen: number[] = []
    const read = async () => {
      for await (const n of streamPipeline(pipeline)) seen.push(n)
    }
    await expect(read()).rejects.toMatchObject({ code: 'source_failed' })
    expect(seen).toEqual([1, 2])
  })

  test('that is cancelled while nobody waits reports it with the next request, and keeps no listener', async () => {
    const stop = new AbortController()
    const pipeline = definePipeline('p').source([1, 2, 3])
    const results = streamPipeline(pipeline, undefined, { signal: stop.signal })
    expect(await results.next()).toEqual(item(1))
    stop.abort('enough')
    await expect(results.next()).rejects.toMatchObject({ code: 'pipeline_cancelled', cause: 'enough' })
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
  })

  test('whose source cannot be closed rejects when it is returned', async () => {
    const pipeline = definePipeline('p').source(function* () {
      try {
        yield 1
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: the generator fails while it is closed.
        throw new Error('not closed')
      }
    })
    const results = streamPipeline(pipeline)
    await results.next()
    await expect(results.return?.()).rejects.toMatchObject({ code: 'source_failed' })
  })
})
