// Tests runs one property at a time: sources, order, bounds, errors, cancellation, and the types of stages.
import { Readable } from 'node:stream'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type Collected, definePipeline, type PipelineError, runPipeline, streamPipeline } from './index.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)
const failure = (run: Promise<unknown>): Promise<PipelineError> =>
  run.then(
    () => Promise.reject(new Error('the run did not fail')),
    (error) => error,
  )

/** Calls that return when the test says so. */
function calls<Item>() {
  const waiting = new Map<Item, PromiseWithResolvers<unknown>>()
  const started: Item[] = []
  const call = (item: Item): Promise<unknown> => {
    started.push(item)
    const promise = Promise.withResolvers<unknown>()
    waiting.set(item, promise)
    return promise.promise
  }
  const settle = async (item: Item, act: (promise: PromiseWithResolvers<unknown>) => void): Promise<void> => {
    const promise = waiting.get(item)
    if (promise === undefined) throw new Error(`no call for ${item}`)
    act(promise)
    await flushed()
  }
  return {
    call,
    started,
    resolve: (item: Item) => settle(item, (promise) => promise.resolve(item)),
    drop: (item: Item) => settle(item, (promise) => promise.resolve(undefined)),
    reject: (item: Item, error: unknown) => settle(item, (promise) => promise.reject(error)),
  }
}

/** Lets every promise that can settle do so. */
const flushed = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('a source', () => {
  test.each<[string, Parameters<ReturnType<typeof definePipeline>['source']>[0]]>([
    ['an array', [1, 2]],
    ['an iterator', new Set([1, 2]).values()],
    ['a stream', Readable.from([1, 2])],
    ['a function', () => [1, 2]],
    ['an asynchronous function', async () => [1, 2]],
    [
      'a generator function',
      function* () {
        yield* [1, 2]
      },
    ],
    [
      'an asynchronous generator function',
      async function* () {
        yield* [1, 2]
      },
    ],
    ['a function that returns a promise of an asynchronous iterable', async () => Readable.from([1, 2])],
  ])('can be %s', async (_, source) => {
    expect(await runPipeline(definePipeline('p').source(source))).toEqual([1, 2])
  })

  test('receives the input of the run', async () => {
    const upTo = definePipeline('p').source((count: number) => numbers(count))
    expect(await runPipeline(upTo, 3)).toEqual([0, 1, 2])
    // @ts-expect-error: the input is missing.
    void runPipeline(upTo).catch(() => {})
    // @ts-expect-error: the input is not a number.
    void runPipeline(upTo, '3').catch(() => {})
  })

  test.each([
    [1, '1'],
    [null, 'null'],
    [undefined, 'undefined'],
    ['abc', 'the string "abc"'],
    [Promise.resolve('abc'), 'the string "abc"'],
    [{ a: 1 }, 'an object that cannot be iterated'],
  ])('that returns no iterable fails the run (%#)', async (returned, shown) => {
    // The types do not allow these values, but plain JavaScript can return them.
    const error = await failure(runPipeline(definePipeline('p').source((() => returned) as unknown as () => number[])))
    expect(error).toMatchObject({
      code: 'source_failed',
      message: `pipeline 'p' failed in its source 'source' after processing all earlier items: the source returned ${shown}; expected an iterable, such as an array or a generator, or an async iterable, such as a stream`,
      cause: expect.any(TypeError),
    })
  })

  test('whose iterator returns no object fails the run', async () => {
    const broken = { [Symbol.iterator]: () => ({ next: () => undefined as never }) }
    expect(await failure(runPipeline(definePipeline('p').source(broken)))).toMatchObject({ code: 'source_failed' })
  })

  test('that throws does so only after all results: its error is looked at last', async () => {
    const { call, resolve } = calls<number>()
    function* walk() {
      yield* [1, 2]
      throw new Error('no such directory')
    }
    const seen: unknown[] = []
    const run = runPipeline(
      definePipeline('p')
        .source(walk)
        .map(call, { concurrency: 5 })
        .map((n) => seen.push(n)),
    )
    const failed = failure(run)
    await resolve(1)
    await resolve(2)
    expect(await failed).toMatchObject({
      code: 'source_failed',
      stage: 'walk',
      message: "pipeline 'p' failed in its source 'walk' after processing all earlier items: no such directory",
    })
    expect(seen).toEqual([1, 2])
  })

  test('that throws fails a run that collects errors, too, and then nothing is reduced', async () => {
    let reduced = false
    const pipeline = definePipeline('p', { onError: 'collect' })
      .source(function* () {
        yield 1
        throw new Error('no')
      })
      .reduce(() => {
        reduced = true
        return 'reduced'
      })
    expect(await failure(runPipeline(pipeline))).toMatchObject({ code: 'source_failed' })
    expect(reduced).toBe(false)
  })

  test('whose error comes with that of an item loses to it', async () => {
    const pipeline = definePipeline('p')
      .source(function* () {
        yield 1
        throw new Error('walk')
      })
      .map(async () => {
        throw new Error('digest')
      })
    expect((await failure(runPipeline(pipeline))).cause).toEqual(new Error('digest'))
  })

  test('that cancels its own run while it is read is closed', async () => {
    const stop = new AbortController()
    let closed = false
    const source = function* () {
      try {
        yield 1
        stop.abort()
        yield 2
      } finally {
        closed = true
      }
    }
    const run = runPipeline(definePipeline('p').source(source), undefined, { signal: stop.signal })
    expect(await failure(run)).toMatchObject({ code: 'pipeline_cancelled' })
    expect(closed).toBe(true)
  })

  test('that is available only after the run was cancelled is closed without being read', async () => {
    const available = Promise.withResolvers<AsyncIterable<number>>()
    const stop = new AbortController()
    const source = () => available.promise
    const run = failure(runPipeline(definePipeline('p').source(source), undefined, { signal: stop.signal }))
    stop.abort()
    const calls: string[] = []
    const record = (name: string) => async () => {
      calls.push(name)
      return { done: true, value: undefined } as const
    }
    available.resolve({ [Symbol.asyncIterator]: () => ({ next: record('next'), return: record('return') }) })
    expect(await run).toMatchObject({ code: 'pipeline_cancelled' })
    expect(calls).toEqual(['return'])
  })

  test('that cannot be closed fails the run', async () => {
    const source = async function* () {
      try {
        yield* [1, 2]
      } finally {
        await Promise.reject(new Error('not closed'))
      }
    }
    expect(await failure(runPipeline(definePipeline('p').source(source).take(1)))).toMatchObject({
      code: 'source_failed',
      cause: new Error('not closed'),
    })
  })
})

describe('bounds', () => {
  test('a stage runs at most `concurrency` calls, and starts none without room for its result', async () => {
    const [first, second] = [calls<number>(), calls<unknown>()]
    let read = 0
    function* source() {
      for (; read < 100; read++) yield read
    }
    const stop = new AbortController()
    const pipeline = definePipeline('p')
      .source(source)
      .map(first.call, { concurrency: 2, buffer: 1 })
      .map(second.call, { concurrency: 1, buffer: 0 })
    const run = failure(runPipeline(pipeline, undefined, { signal: stop.signal }))
    expect(first.started).toEqual([0, 1])
    await first.resolve(0)
    expect([first.started, second.started]).toEqual([[0, 1, 2], [0]])
    await first.resolve(1)
    await first.resolve(2)
    // One result is in the buffer, and one waits for room in it, so that no further call may start.
    expect([first.started, second.started]).toEqual([[0, 1, 2, 3], [0]])
    await first.resolve(3)
    expect(first.started).toEqual([0, 1, 2, 3])
    expect(read).toBe(3)
    stop.abort()
    await second.resolve(0)
    await run
  })

  test('a consumer that stops asking stops the source: what is read is bounded by the stages', async () => {
    let read = 0
    function* source() {
      for (;;) yield read++
    }
    const pipeline = definePipeline('p')
      .source(source)
      .map(async (n) => n, { concurrency: 3 })
      .map((n) => n, { concurrency: 2, buffer: 5 })
    await using results = streamPipeline(pipeline)
    expect(await results.next()).toEqual({ done: false, value: 0 })
    await flushed()
    expect(read).toBeLessThanOrEqual(1 + 6 + 7)
    expect(read).toBeGreaterThan(7)
  })

  test('a long source is never further ahead of the last stage than the stages can hold', async () => {
    let [ahead, most] = [0, 0]
    const pipeline = definePipeline('p')
      .source(function* () {
        for (let i = 0; i < 100_000; i++) {
          most = Math.max(most, ++ahead)
          yield i
        }
      })
      .map(async (n) => n + 1, { concurrency: 20 })
      .batch(100)
      .map(async (numbers) => numbers, { concurrency: 2 })
      .flat()
      .fold((sum, n) => {
        ahead--
        return sum + n
      }, 0)
    expect(await runPipeline(pipeline)).toBe(5_000_050_000)
    expect(most).toBeLessThanOrEqual(40 + (4 + 1 + 1) * 100)
  })

  test('a take after an ordered stage makes it start no more items than are taken', async () => {
    const { call, started, resolve, drop } = calls<number>()
    const run = runPipeline(definePipeline('p').source(numbers(100)).map(call, { concurrency: 10 }).take(2))
    expect(started).toEqual([0, 1])
    await drop(1)
    expect(started).toEqual([0, 1, 2])
    await resolve(0)
    await resolve(2)
    expect(await run).toEqual([0, 2])
  })

  test('a take after an unordered stage gets the results that come first, and aborts the others', async () => {
    const aborted: number[] = []
    const race = (n: number, { signal }: { readonly signal: AbortSignal }) =>
      n === 2
        ? Promise.resolve(n)
        : new Promise<number>((_, reject) => {
            signal.addEventListener('abort', () => {
              aborted.push(n)
              reject(signal.reason)
            })
          })
    const fastest = definePipeline('p', { ordered: false }).source(numbers(3)).map(race, { concurrency: 3 }).take(1)
    expect(await runPipeline(fastest)).toEqual([2])
    expect(aborted).toEqual([0, 1])
  })

  test('a run that is cancelled by a listener of a full take passes nothing on', async () => {
    const stop = new AbortController()
    let reduced = false
    const pipeline = definePipeline('p')
      .source(numbers(5))
      .map((n, { signal }) => {
        signal.addEventListener('abort', () => stop.abort())
        return n
      })
      .take(2)
      .reduce(() => {
        reduced = true
        return 'reduced'
      })
    const run = runPipeline(pipeline, undefined, { signal: stop.signal })
    expect(await failure(run)).toMatchObject({ code: 'pipeline_cancelled' })
    expect(reduced).toBe(false)
  })

  test('the signal of the stages after a take does not abort when it is full', async () => {
    const signals: AbortSignal[] = []
    const pipeline = definePipeline('p')
      .source(numbers(5))
      .map((n, { signal }) => {
        signals[0] = signal
        return n
      })
      .take(2)
      .map(async (n, { signal }) => {
        signals[1] = signal
        return n
      })
    expect(await runPipeline(pipeline)).toEqual([0, 1])
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  })
})

describe('order', () => {
  test('results have the order of the items, whatever order the calls return in', async () => {
    const { call, resolve } = calls<number>()
    const run = runPipeline(definePipeline('p').source(numbers(3)).map(call, { concurrency: 3 }))
    for (const item of [2, 0, 1]) await resolve(item)
    expect(await run).toEqual([0, 1, 2])
  })

  test('an unordered pipeline has the results in the order in which the calls return', async () => {
    const { call, resolve } = calls<number>()
    const pipeline = definePipeline('p', { ordered: false }).source(numbers(3)).map(call, { concurrency: 3 })
    const run = runPipeline(pipeline)
    for (const item of [2, 0, 1]) await resolve(item)
    expect(await run).toEqual([2, 0, 1])
  })

  test('an item for which the function returns undefined is dropped', async () => {
    const even = definePipeline('p')
      .source(numbers(5))
      .map((n) => (n % 2 === 0 ? n : undefined))
    expect(await runPipeline(even)).toEqual([0, 2, 4])
    expectTypeOf(await runPipeline(even)).toEqualTypeOf<number[]>()
  })
})

describe('an error', () => {
  const odd = (n: number): number => {
    if (n % 2 === 1) throw new Error(`${n} is odd`)
    return n
  }

  test('ends the run, aborts the running calls, and waits for them', async () => {
    const events: string[] = []
    const goOn = Promise.withResolvers<void>()
    const digest = async (n: number, { signal }: { readonly signal: AbortSignal }) => {
      if (n === 1) throw new Error('unreadable')
      signal.addEventListener('abort', () => events.push(`abort ${n}`))
      await goOn.promise
      events.push(`end ${n}`)
    }
    const pipeline = definePipeline('digest-tree').source(numbers(9)).map(digest, { concurrency: 3 })
    const run = failure(runPipeline(pipeline)).then((error) => {
      events.push('failed')
      return error
    })
    await flushed()
    expect(events).toEqual(['abort 0', 'abort 2'])
    goOn.resolve()
    expect(await run).toMatchObject({
      name: 'BullpenError',
      code: 'stage_failed',
      pipeline: 'digest-tree',
      stage: 'digest',
      position: '1',
      cause: new Error('unreadable'),
      message: "pipeline 'digest-tree' failed in stage 'digest' at item 1: unreadable",
    })
    expect(events).toEqual(['abort 0', 'abort 2', 'end 0', 'end 2', 'failed'])
  })

  test('names the position of an item in batches and arrays', async () => {
    const pipeline = definePipeline('p')
      .source(numbers(6))
      .batch(2)
      .flatMap((pair) => [pair, pair.map((n) => n * 10)])
      .map(([first]) => (first === 20 ? Promise.reject('no') : first))
    expect(await failure(runPipeline(pipeline))).toMatchObject({ stage: 'map', position: '2.1', cause: 'no' })
  })

  test('of flat names the item that is not an array', async () => {
    const pipeline = definePipeline('p').source([1]) as unknown as ReturnType<typeof numbers> & {
      flat(): Parameters<typeof runPipeline>[0]
    }
    const error = await failure(runPipeline(pipeline.flat() as never))
    expect(error.message).toContain('the item is a number; flat expects arrays')
  })

  test('is collected with those of other items if the pipeline says so', async () => {
    const pipeline = definePipeline('p', { onError: 'collect', maxErrors: 2 })
      .source(numbers(7))
      .map(odd, { concurrency: 3 })
    const result = await runPipeline(pipeline)
    expectTypeOf(result).toEqualTypeOf<Collected<number[]>>()
    expect(result.output).toEqual([0, 2, 4, 6])
    expect(result.errors.map(({ position, code }) => ({ position, code }))).toEqual([
      { position: '1', code: 'stage_failed' },
      { position: '3', code: 'stage_failed' },
    ])
    expect(result.errorCount).toBe(3)
  })

  test('of reduce or fold ends the run, even if it collects errors', async () => {
    const start = definePipeline('p', { onError: 'collect' }).source([1, 2])
    const fail = () => {
      throw new Error('no')
    }
    expect(await failure(runPipeline(start.reduce(fail)))).toMatchObject({ stage: 'fail', position: undefined })
    expect(await failure(runPipeline(start.fold(fail, 0)))).toMatchObject({ stage: 'fail', position: '0' })
    const later = async () => fail()
    expect(await failure(runPipeline(start.fold(later, 0)))).toMatchObject({ stage: 'later', position: '0' })
  })

  test('above a take that is full does not count', async () => {
    const { call, resolve, reject } = calls<number>()
    const pipeline = definePipeline('p', { ordered: false }).source(numbers(9)).map(call, { concurrency: 2 }).take(1)
    const run = runPipeline(pipeline)
    await resolve(0)
    await reject(1, new Error('too late'))
    expect(await run).toEqual([0])
  })
})

describe('a reduce', () => {
  test('receives all results once, in order', async () => {
    const sorted = definePipeline('p')
      .source(['b', 'a'])
      .map(async (text) => text.toUpperCase())
      .reduce((all) => all.toSorted())
    expect(await runPipeline(sorted)).toEqual(['A', 'B'])
    expectTypeOf(runPipeline(sorted)).resolves.toEqualTypeOf<string[]>()
    const none = definePipeline('p')
      .source<number>([])
      .reduce(async (all) => all.length)
    expect(await runPipeline(none)).toBe(0)
  })

  test('can be followed by no stage', () => {
    const ended = definePipeline('p')
      .source([1])
      .reduce((all) => all)
    // @ts-expect-error: the pipeline has ended.
    expect(ended.map).toBeUndefined()
    // @ts-expect-error: its only result is not streamed.
    void streamPipeline(ended)
  })
})

describe('a fold', () => {
  test('waits for each step, and begins every run with a copy of its initial state', async () => {
    const lengths = definePipeline('p')
      .source(['a', 'bb', 'a'])
      .fold(async (counts, text) => counts.set(text, (counts.get(text) ?? 0) + 1), new Map<string, number>())
    for (let run = 0; run < 2; run++) {
      expect([...(await runPipeline(lengths))]).toEqual([
        ['a', 2],
        ['bb', 1],
      ])
    }
  })
})

describe('the types of the stages', () => {
  test('are checked: a stage takes what the one before returns', () => {
    const pipeline = definePipeline('p')
      .source((path: string) => [path])
      .map(async (path) => ({ path, size: path.length }))
      .batch(2)
    expectTypeOf(pipeline.map).parameter(0).parameter(0).toEqualTypeOf<{ path: string; size: number }[]>()
    expectTypeOf(runPipeline(pipeline, '.')).resolves.toEqualTypeOf<{ path: string; size: number }[][]>()
    expectTypeOf(runPipeline(pipeline.flat(), '.')).resolves.toEqualTypeOf<{ path: string; size: number }[]>()
    // @ts-expect-error: an item is an object, not a number.
    pipeline.flat().map((n: number) => n)
    // @ts-expect-error: the items are not arrays.
    pipeline.flat().flat()
    // @ts-expect-error: a pipeline that collects errors cannot be streamed.
    void streamPipeline(definePipeline('p', { onError: 'collect' }).source([1]))
  })
})
