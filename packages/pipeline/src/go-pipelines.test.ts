// The claims of the article "Go Concurrency Patterns: Pipelines and cancellation" (go.dev/blog/pipelines), one by one.
import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { definePipeline, merge, type Pipeline, PipelineError, runPipeline, streamPipeline } from './index.ts'

const gen = (...numbers: readonly number[]) => definePipeline('gen').source(numbers)
const sq = <Input>(numbers: Pipeline<Input, number>, concurrency = 1) => numbers.map((n) => n * n, { concurrency })

async function print(numbers: AsyncIterable<number>): Promise<number[]> {
  const printed: number[] = []
  for await (const n of numbers) printed.push(n)
  return printed
}

/** A source that records how far it was read and whether it was closed. */
function watched(count = Number.POSITIVE_INFINITY) {
  const state = { read: 0, closed: false }
  async function* source() {
    try {
      for (; state.read < count; state.read++) yield state.read
    } finally {
      state.closed = true
    }
  }
  return { state, source }
}

describe('squaring numbers', () => {
  test('gen, sq and print form a pipeline of three stages: 4, then 9', async () => {
    expect(await print(streamPipeline(sq(gen(2, 3))))).toEqual([4, 9])
  })

  test('stages compose any number of times, because sq takes and returns the same type: 16, then 81', async () => {
    expect(await print(streamPipeline(sq(sq(gen(2, 3)))))).toEqual([16, 81])
    expect(await runPipeline(sq(sq(gen(2, 3))))).toEqual([16, 81])
  })
})

describe('fan-out, fan-in', () => {
  test('two workers read from one source until it is exhausted', async () => {
    let [running, most] = [0, 0]
    const both = Promise.withResolvers<void>()
    const squares = gen(2, 3, 4).map(
      async (n) => {
        most = Math.max(most, ++running)
        if (running === 2) both.resolve()
        await both.promise
        running--
        return n * n
      },
      { concurrency: 2 },
    )
    expect(await runPipeline(squares)).toEqual([4, 9, 16])
    expect(most).toBe(2)
  })

  test('merge returns values as they come, in any order: 4 then 9, or 9 then 4', async () => {
    const slow = Promise.withResolvers<number>()
    const c1 = gen(2).map(() => slow.promise)
    const c2 = sq(gen(3))
    const out = merge(streamPipeline(c1), streamPipeline(c2))
    expect(await out.next()).toEqual({ done: false, value: 9 })
    slow.resolve(4)
    expect(await out.next()).toEqual({ done: false, value: 4 })
  })

  test('merge ends only after all of its senders have ended', async () => {
    const held = Promise.withResolvers<number>()
    const ended: string[] = []
    const fast = async function* () {
      yield 1
      ended.push('fast')
    }
    const slow = async function* () {
      yield await held.promise
      ended.push('slow')
    }
    const out = print(merge(fast(), slow())).then((printed) => {
      ended.push('merge')
      return printed
    })
    held.resolve(2)
    expect((await out).toSorted()).toEqual([1, 2])
    expect(ended).toEqual(['fast', 'slow', 'merge'])
  })
})

describe('stopping short', () => {
  test('a consumer that takes one value and returns leaks nothing: the source is closed and no call is left', async () => {
    const { state, source } = watched()
    let running = 0
    const squares = definePipeline('sq')
      .source(source)
      .map(
        async (n) => {
          running++
          await Promise.resolve()
          running--
          return n * n
        },
        { concurrency: 2 },
      )
    for await (const first of streamPipeline(squares)) {
      expect(first).toBe(0)
      break
    }
    expect(state.closed).toBe(true)
    expect(running).toBe(0)
  })

  test('senders are not blocked for ever by a consumer that takes fewer values than they send', async () => {
    const [one, two] = [watched(), watched()]
    const out = merge(one.source(), two.source())
    await out.next()
    await out.return?.()
    expect([one.state.closed, two.state.closed]).toEqual([true, true])
    expect(await out.next()).toEqual({ done: true, value: undefined })
  })

  test('take(1) stops all stages before it, without a count of how many senders there are', async () => {
    const { state, source } = watched()
    const first = sq(sq(definePipeline('first').source(source), 8), 8).take(1)
    expect(await runPipeline(first)).toEqual([0])
    expect(state.closed).toBe(true)
  })
})

describe('explicit cancellation', () => {
  test('done is a broadcast: one abort reaches every running call of every stage', async () => {
    const done = new AbortController()
    const allRun = Promise.withResolvers<void>()
    const stopped: string[] = []
    const untilDone = (signal: AbortSignal, name: string) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => {
          stopped.push(name)
          reject(signal.reason)
        })
        if (name === 'second') allRun.resolve()
      })
    const pipeline = gen(1, 2, 3)
      .map((n, { signal }) => (n === 1 ? n : untilDone(signal, 'first')), { concurrency: 3 })
      .map((_, { signal }) => untilDone(signal, 'second'))
    const run = runPipeline(pipeline, undefined, { signal: done.signal })
    await allRun.promise
    done.abort('enough')
    await expect(run).rejects.toMatchObject({ code: 'pipeline_cancelled', cause: 'enough' })
    expect(stopped.toSorted()).toEqual(['first', 'first', 'second'])
  })

  test('a late joiner sees done: a run that starts after the abort calls nothing', async () => {
    const { state, source } = watched()
    const late = definePipeline('late').source(source)
    const signal = AbortSignal.abort('enough')
    await expect(runPipeline(late, undefined, { signal })).rejects.toMatchObject({ cause: 'enough' })
    await expect(streamPipeline(late, undefined, { signal }).next()).rejects.toBeInstanceOf(PipelineError)
    expect(state).toEqual({ read: 0, closed: false })
  })

  test('a function that looks at done late, after the abort, sees it', async () => {
    const done = new AbortController()
    const goOn = Promise.withResolvers<void>()
    let seen: boolean | undefined
    const pipeline = gen(1).map(async (_, { signal }) => {
      await goOn.promise
      seen = signal.aborted
    })
    const run = runPipeline(pipeline, undefined, { signal: done.signal })
    done.abort()
    goOn.resolve()
    await expect(run).rejects.toThrow('was cancelled')
    expect(seen).toBe(true)
  })

  test('a run leaves no listener on the signal, however it ends', async () => {
    const { signal } = new AbortController()
    await runPipeline(sq(gen(2)), undefined, { signal })
    await print(streamPipeline(sq(gen(2)), undefined, { signal }))
    for await (const _ of streamPipeline(sq(gen(2, 3)), undefined, { signal })) break
    const failing = gen(2).map(() => {
      throw new Error('no')
    })
    await expect(runPipeline(failing, undefined, { signal })).rejects.toThrow('no')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})
