// Tests how pipelines of tasks run within one process, and that they return there what they return across a fleet.
import { setTimeout as wait } from 'node:timers/promises'
import {
  type Collected,
  defineHandler,
  definePipeline,
  defineTask,
  type Log,
  rateLimited,
  type TaskContext,
} from '@bullpen/contract'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { type PipelineError, runPipeline, streamPipeline } from '../index.ts'
import {
  count,
  cursorItem,
  gather,
  handlers,
  odd,
  oddSquares,
  runOnBroker,
  square,
  sum,
  total,
  withHandlers,
} from './tasks.fixture.ts'

const squares = definePipeline('squares').source(count).map(square, { concurrency: 3 })
const collected = definePipeline('collected', { onError: 'collect' }).source(count).map(square)
const upTo = (most: number) => Array.from({ length: most }, (_, n) => ({ n: n * n }))
const failure = (run: Promise<unknown>): Promise<PipelineError> =>
  run.then(
    () => Promise.reject(new Error('the run did not fail')),
    (error) => error,
  )

describe('a pipeline of tasks in one process', () => {
  test('returns the output of its reduction', async () => {
    const output = await runPipeline(oddSquares.reduce(sum), { upTo: 6 }, { handlers })
    expectTypeOf(output).toEqualTypeOf<{ sum: number; ns: number[]; upTo: number }>()
    expect(output).toEqual({ sum: 35, ns: [1, 9, 25], upTo: 6 })
  })

  test('returns its results if it has no reduction', async () => {
    const results = await runPipeline(squares, { upTo: 4 }, { handlers })
    expectTypeOf(results).toEqualTypeOf<{ n: number }[]>()
    expect(results).toEqual(upTo(4))
  })

  test('returns collected errors with its results', async () => {
    const result = await runPipeline(collected, { upTo: 22 }, { handlers })
    expectTypeOf(result).toEqualTypeOf<Collected<{ n: number }[]>>()
    expect(result.output).toEqual(upTo(22).filter(({ n }) => n !== 400))
    expect(result.errors).toMatchObject([{ stage: square.name, position: '20', cause: { code: 'too_large' } }])
    expect(result.errorCount).toBe(1)
  })

  test.each([
    ['a run', oddSquares.reduce(sum), 9],
    ['an empty run', oddSquares.reduce(sum), 0],
    ['a run that takes results', oddSquares.take(2).reduce(sum), 1_000],
    ['a run whose item fails', oddSquares.reduce(sum), 30],
    ['a run whose source fails', oddSquares.reduce(sum), 13],
    ['a run whose source fails within a batch', definePipeline('b').source(count).batch(5).map(total).reduce(sum), 13],
    ['a run that collects errors', collected.reduce(sum), 30],
    ['a run with batches', oddSquares.batch(2).map(total).batch(2).reduce(gather), 14],
    ['a run with batches of its source', definePipeline('b').source(count).batch(4).map(total).reduce(sum), 10],
    ['a run whose batch fails', definePipeline('b').source(count).batch(9).map(total).reduce(sum), 20],
    ['an unordered run', definePipeline('u', { ordered: false }).source(count).map(square).reduce(sum), 9],
  ])('%s ends as it does across a fleet', async (_, pipeline, most) => {
    const fleet = await runOnBroker(pipeline, { upTo: most }, handlers)
    const local = await runPipeline<{ upTo: number }, unknown, 'cancel' | 'collect', typeof handlers>(
      pipeline,
      { upTo: most },
      { handlers },
    ).then(
      (result) => (pipeline.onError === 'collect' ? (result as Collected<unknown>) : { output: result, errorCount: 0 }),
      () => undefined,
    )
    expect(fleet.result).toBe(local === undefined ? 'failed' : 'completed')
    if (local !== undefined) expect(fleet).toMatchObject({ output: local.output, errorCount: local.errorCount })
  })

  test('can be streamed, and ends when the consumer leaves its loop', async () => {
    let [yielded, closed] = [0, false]
    const given = withHandlers({
      async *source() {
        try {
          for (let n = 0; ; n++) {
            yielded++
            yield { n }
          }
        } finally {
          closed = true
        }
      },
    })
    const results: number[] = []
    for await (const { n } of streamPipeline(squares, { upTo: 0 }, { handlers: given })) {
      results.push(n)
      if (n === 16) break
    }
    expect(results).toEqual([0, 1, 4, 9, 16])
    expect(closed).toBe(true)
    // The stage has room for six items, and the source reads one ahead.
    expect(yielded).toBeLessThanOrEqual(5 + 6 + 2)
  })

  test('that cannot start rejects the first result of its stream, and can then be closed', async () => {
    const stream = streamPipeline(squares, { upTo: 0.5 }, { handlers })
    expect(await failure(stream.next())).toMatchObject({ code: 'invalid_input' })
    expect(await stream.return?.()).toEqual({ done: true, value: undefined })
  })

  test('works on as many items at a time as the concurrency of a stage allows', async () => {
    let [running, most] = [0, 0]
    const all = Promise.withResolvers<void>()
    const stage = async ({ input }: TaskContext<typeof square>) => {
      most = Math.max(most, ++running)
      if (running === 3) all.resolve()
      await all.promise
      running--
      return input
    }
    await runPipeline(squares, { upTo: 50 }, { handlers: withHandlers({ stage }) })
    expect(most).toBe(3)
  })

  test('does not compile without its handlers and the resources that they need', async () => {
    type Needs = { readonly add: (n: number) => number }
    const adding = {
      ...handlers,
      [square.name]: defineHandler(
        square,
        import.meta.url,
        ({ input, resources }: TaskContext<typeof square, Needs>) => ({
          n: resources.add(input.n),
        }),
      ),
    }
    const resources = { add: (n: number) => n + 1 }
    expect(await runPipeline(squares, { upTo: 2 }, { handlers: adding, resources })).toEqual([{ n: 1 }, { n: 2 }])
    // @ts-expect-error: the resources are missing.
    await failure(runPipeline(squares, { upTo: 1 }, { handlers: adding }))
    // @ts-expect-error: the handlers are missing.
    const error = await failure(runPipeline(squares, { upTo: 1 }))
    expect(error).toMatchObject({ code: 'invalid_handler', message: expect.stringContaining('pass their handlers') })
    // @ts-expect-error: the errors would be lost.
    void streamPipeline(collected, { upTo: 1 }, { handlers })
  })

  test.each([
    ['invalid_input', { upTo: 0.5 }, handlers, 'input does not match the schema of test.count'],
    ['invalid_handler', { upTo: 1 }, { ...handlers, [square.name]: handlers[odd.name] }, 'was defined for test.odd'],
    ['invalid_handler', { upTo: 1 }, { [count.name]: handlers[count.name] }, 'test.square has no handler'],
  ])('is refused with %s (%#)', async (code, input, given, message) => {
    const error = await failure(runPipeline(squares, input, { handlers: given }))
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) })
  })
})

describe('an item', () => {
  const dates = defineTask({ name: 'test.dates', queue: 'q', input: z.object({ n: z.int() }), output: z.date() })
  const texts = defineTask({
    name: 'test.texts',
    queue: 'q',
    input: z.string().transform((text) => [text]),
    output: z.array(z.string()),
  })

  test('is passed on as JSON, and parsed with the input schema of the next stage', async () => {
    const given = {
      ...handlers,
      [dates.name]: defineHandler(dates, import.meta.url, ({ input }) => new Date(input.n)),
      [texts.name]: defineHandler(texts, import.meta.url, ({ input }) => input),
    }
    const pipeline = definePipeline('dates')
      .source(count)
      .map(dates)
      .map(texts as never)
    expect(await runPipeline(pipeline, { upTo: 1 }, { handlers: given })).toEqual([['1970-01-01T00:00:00.000Z']])
  })

  test('fails if the output does not match its schema', async () => {
    const stage = () => ({ n: 'one' }) as never
    const error = await failure(runPipeline(squares, { upTo: 1 }, { handlers: withHandlers({ stage }) }))
    expect(error).toMatchObject({ code: 'stage_failed', stage: square.name, position: '0' })
    expect(error.message).toContain('the output of test.square does not match the schema')
  })
})

describe('a task in one process', () => {
  const runStage = (stage: (context: TaskContext<typeof square>) => { n: number } | Promise<{ n: number }>, most = 1) =>
    runPipeline(squares, { upTo: most }, { handlers: withHandlers({ stage }) })

  test('is retried as its definition says, and finds the steps of its earlier attempts', async () => {
    const seen: [attempt: number, key: string][] = []
    let steps = 0
    const results = await runStage(async ({ attempt, fencingToken, once }) => {
      const n = await once('count', (key) => {
        seen.push([attempt, key])
        return ++steps
      })
      if (attempt < 3) throw new Error('again')
      return { n: 10 * n + fencingToken }
    })
    expect(results).toEqual([{ n: 13 }])
    expect(seen).toEqual([[1, expect.stringMatching(/^[0-9a-f]{32}$/)]])
  })

  test('fails with what its last attempt has thrown', async () => {
    let attempts = 0
    const error = await failure(
      runStage(() => {
        throw new Error(`attempt ${++attempts}`)
      }),
    )
    expect(error).toMatchObject({ code: 'stage_failed', cause: new Error('attempt 3') })
  })

  test('is not retried beyond the retry budget of its definition until the budget allows it', async () => {
    const budget = { ratio: 0, minRetriesPerSecond: 1 } as const
    const retry = { maxAttempts: 2, backoff: { type: 'fixed', initialDelay: '1ms' }, budget } as const
    const limited = defineTask({ ...{ name: 'test.limited', queue: 'q', input: z.object({ n: z.int() }) }, retry })
    const pipeline = definePipeline('limited', { onError: 'collect' }).source(count).map(limited, { concurrency: 12 })
    const retried = new Set<number>()
    const over = new AbortController()
    const beganAt = performance.now()
    const given = {
      ...handlers,
      [limited.name]: defineHandler(limited, import.meta.url, ({ input, attempt }) => {
        if (attempt === 2) retried.add(input.n)
        // Ten retries are free, and each further one waits for another second.
        if (retried.size === 10) setTimeout(() => over.abort(), 20)
        throw new Error('again')
      }),
    }
    const run = runPipeline(pipeline, { upTo: 12 }, { handlers: given, signal: over.signal })
    expect(await failure(run)).toMatchObject({ code: 'pipeline_cancelled' })
    expect(retried.size).toBeGreaterThanOrEqual(10)
    expect(retried.size).toBeLessThanOrEqual(10 + Math.floor((performance.now() - beganAt) / 1_000))
  })

  test('can snooze, which is not an attempt', async () => {
    const results = await runStage(({ attempt, fencingToken, snooze }) =>
      fencingToken < 5 ? snooze('1ms') : { n: attempt },
    )
    expect(results).toEqual([{ n: 1 }])
  })

  test('can throttle its queue, of which no task then starts', async () => {
    let throttledUntil = 0
    const thrown = Promise.withResolvers<void>()
    const given = withHandlers({
      async *source() {
        yield { n: 0 }
        await thrown.promise
        // By then, the throttle has been taken into account.
        await wait(10)
        yield* [{ n: 1 }, { n: 2 }]
      },
      stage: ({ input, fencingToken }) => {
        if (input.n === 0 && fencingToken === 1) {
          throttledUntil = Date.now() + 50
          thrown.resolve()
          throw rateLimited('50ms')
        }
        // Timers may be early by a millisecond.
        return { n: Date.now() >= throttledUntil - 2 ? input.n : -1 }
      },
    })
    const results = await runPipeline(squares, { upTo: 0 }, { handlers: given })
    expect(results).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }])
  })

  test('receives the abort of its timeout, and is left behind after its grace period', async () => {
    const timed = defineTask({
      ...{ name: 'test.timed', queue: 'q', input: z.object({ n: z.int() }), retry: { maxAttempts: 1 } },
      ...{ timeout: '20ms', grace: '1ms' },
    })
    const reasons: unknown[] = []
    const handler = defineHandler(timed, import.meta.url, ({ signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason.name))
      return new Promise<void>(() => {})
    })
    const pipeline = definePipeline('timed').source(count).map(timed)
    const run = runPipeline(pipeline, { upTo: 1 }, { handlers: { ...handlers, [timed.name]: handler } })
    expect(await failure(run)).toMatchObject({
      code: 'stage_failed',
      cause: { code: 'run_timeout', message: 'the run timeout of 20ms expired' },
    })
    expect(reasons).toEqual(['TimeoutError'])
  })

  test('can log, report progress and send heartbeats', async () => {
    const lines: object[] = []
    const write = (fields: object, message: string) => void lines.push({ ...fields, message })
    const log: Log = { debug: write, info: write, warn: write, error: write }
    const stage = async ({ input, log, progress, heartbeat, checkpoint }: TaskContext<typeof square>) => {
      heartbeat()
      checkpoint()
      await progress(0.5, 'half')
      log.info({ step: 1 }, 'squared')
      return input
    }
    await runPipeline(squares, { upTo: 1 }, { handlers: withHandlers({ stage }), log })
    expect(lines).toEqual([expect.objectContaining({ task: square.name, attempt: 1, step: 1, message: 'squared' })])
  })

  test.each(['enqueue', 'onSuccess', 'onFailure', 'onEnd', 'compensate'] as const)(
    'cannot call context.%s, and is not retried if it does',
    async (method) => {
      let attempts = 0
      const error = await failure(
        runStage(async (context) => {
          attempts++
          await context[method](odd, { n: 1 })
          return context.input
        }),
      )
      expect(error).toMatchObject({
        cause: {
          code: 'needs_a_fleet',
          message: expect.stringContaining(
            `context.${method} is not available in a pipeline that runs within one process`,
          ),
        },
      })
      expect(attempts).toBe(1)
    },
  )
})

describe('the cancel of a run of tasks', () => {
  test('reaches running handlers, and starts no further task', async () => {
    const caller = new AbortController()
    const started: number[] = []
    const reasons: unknown[] = []
    const stage = ({ input, signal }: TaskContext<typeof square>) =>
      new Promise<never>((_, reject) => {
        started.push(input.n)
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason.message)
          reject(signal.reason)
        })
        if (started.length === 3) caller.abort()
      })
    const run = runPipeline(squares, { upTo: 100 }, { handlers: withHandlers({ stage }), signal: caller.signal })
    expect(await failure(run)).toMatchObject({ code: 'pipeline_cancelled' })
    expect(started).toEqual([0, 1, 2])
    expect(reasons).toEqual(Array(3).fill('the task was cancelled'))
  })

  test('ends the wait for a retry', async () => {
    const patient = defineTask({
      ...{ name: 'test.patient', queue: 'q', input: z.object({ n: z.int() }) },
      retry: { backoff: { type: 'fixed', initialDelay: '1h' } },
    })
    const caller = new AbortController()
    const handler = defineHandler(patient, import.meta.url, () => {
      setImmediate(() => caller.abort())
      throw new Error('again')
    })
    const pipeline = definePipeline('patient').source(count).map(patient)
    const given = { ...handlers, [patient.name]: handler }
    const run = runPipeline(pipeline, { upTo: 1 }, { handlers: given, signal: caller.signal })
    expect(await failure(run)).toMatchObject({ code: 'pipeline_cancelled' })
  })

  test('reaches short tasks through their signal', async () => {
    const caller = new AbortController()
    const short = defineTask({ name: 'test.short', queue: 'q', kind: 'short', input: z.object({ n: z.int() }) })
    const handler = defineHandler(short, import.meta.url, async ({ signal }) => {
      setImmediate(() => caller.abort())
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    const pipeline = definePipeline('short').source(count).map(short)
    const given = { ...handlers, [short.name]: handler }
    const run = runPipeline(pipeline, { upTo: 1 }, { handlers: given, signal: caller.signal })
    expect(await failure(run)).toMatchObject({ code: 'pipeline_cancelled' })
  })
})

describe('a source in one process', () => {
  test('that fails is run again, and its first items are not passed on twice', async () => {
    let runs = 0
    const source = async function* (most: number) {
      const first = runs++ === 0
      for (let n = 0; n < most; n++) {
        yield { n }
        if (n === 2 && first) throw new Error('lost connection')
      }
    }
    expect(await runPipeline(squares, { upTo: 5 }, { handlers: withHandlers({ source }) })).toEqual(upTo(5))
    expect(runs).toBe(2)
  })

  test('waits for its stages for as long as it takes, and is not run again', async () => {
    let runs = 0
    const source = function* (most: number) {
      runs++
      for (let n = 0; n < most; n++) yield { n }
    }
    // Across a fleet, a source waits in its slot for at most a second.
    const stage = async ({ input }: TaskContext<typeof square>) => {
      if (input.n === 0) await wait(1_100)
      return { n: input.n ** 2 }
    }
    expect(await runPipeline(squares, { upTo: 20 }, { handlers: withHandlers({ source, stage }) })).toEqual(upTo(20))
    expect(runs).toBe(1)
  })

  test('resumes after its last cursor', async () => {
    const cursors: unknown[] = []
    const source = function* (most: number, _: unknown, cursor: unknown) {
      cursors.push(cursor)
      for (let n = Number(cursor ?? 0); n < most; n++) {
        if (n === 3 && cursors.length === 1) throw new Error('lost connection')
        yield cursorItem(n)
      }
    }
    expect(await runPipeline(squares, { upTo: 5 }, { handlers: withHandlers({ source }) })).toEqual(upTo(5))
    expect(cursors).toEqual([undefined, 3])
  })

  test('that yields other items when it is run again fails the run after the items before', async () => {
    let runs = 0
    const source = function* () {
      yield { n: runs++ }
      throw new Error('lost connection')
    }
    const passed: number[] = []
    const stage = ({ input }: TaskContext<typeof square>) => {
      passed.push(input.n)
      return input
    }
    const error = await failure(runPipeline(squares, { upTo: 5 }, { handlers: withHandlers({ source, stage }) }))
    expect(error).toMatchObject({ code: 'source_failed', stage: count.name, cause: { code: 'source_changed' } })
    expect(passed).toEqual([0])
  })

  test('that ignores its cursor when it is run again fails the run', async () => {
    const source = function* () {
      yield cursorItem(0)
      throw new Error('lost connection')
    }
    const error = await failure(runPipeline(squares, { upTo: 5 }, { handlers: withHandlers({ source }) }))
    expect(error).toMatchObject({ code: 'source_failed', cause: { code: 'source_changed' } })
  })

  test('is closed when enough results were taken, and its signal aborts', async () => {
    let closed: boolean | undefined
    const source = async function* (_: number, { signal }: TaskContext<typeof count>) {
      try {
        for (let n = 0; ; n++) yield { n }
      } finally {
        closed = signal.aborted
      }
    }
    const given = withHandlers({ source })
    expect(await runPipeline(squares.take(4), { upTo: 0 }, { handlers: given })).toEqual(upTo(4))
    expect(closed).toBe(true)
  })
})
