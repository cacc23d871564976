// Tests what a handler can use and do in an isolate, and how its attempt ends. Threads and processes behave in the same way.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { IsolatedTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ordinary } from './ordinary.fixture.ts'
import { openSetup, outputOf } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

interface Place {
  readonly pid: number
  readonly thread: number
}

/** As for an inline handler. */
const NOT_AN_ERROR = 'the handler threw "a text", which is not an Error'
const ISOLATIONS: readonly IsolatedTask['isolation'][] = ['thread', 'process']

describe.each(ISOLATIONS)('a handler in a %s', (isolation) => {
  const warm = keepWarm(isolation)

  it('runs outside the main thread with parsed input and checked output, and reuses its warm isolate', async () => {
    await using setup = openSetup(isolation)
    const first = await outputOf<Place & { n: number }>(setup.run(tasks.where, { n: '21' }))
    const second = await outputOf<Place>(setup.run(tasks.where))
    expect(first.n).toBe(42)
    expect([first.pid !== process.pid, first.thread !== 0]).toEqual([isolation === 'process', isolation === 'thread'])
    expect([second.pid, second.thread]).toEqual([first.pid, first.thread])
    expect(setup.replaced).toEqual([])
  })

  it("has the worker's arguments, so that a module of resources can read the same settings", async () => {
    const before = process.argv
    onTestFinished(() => {
      process.argv = before
    })
    process.argv = [...before.slice(0, 2), '--files-roots=/data']
    await using setup = openSetup(isolation)
    expect(await outputOf(setup.run(tasks.args))).toEqual({ args: ['--files-roots=/data'] })
  })

  it('sees its whole context, and may destructure it', async () => {
    const setup = warm.setup()
    const meta = { tenant: 'x' }
    const traceContext = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' }
    const run = setup.run(tasks.context, {}, { fencingToken: 3, attempt: 2, meta, correlationId: 'c-1', traceContext })
    expect(await outputOf(run)).toEqual({
      id: run.task.id,
      name: 'test.context',
      input: { a: 7 },
      fencingToken: 3,
      attempt: 2,
      meta,
      correlationId: 'c-1',
      traceContext,
      times: [1_000, 2_000],
      oneSignal: true,
      types: ['function', 'function', 'object', ...Array.from({ length: 7 }, () => 'function')],
    })
    // heartbeat and checkpoint
    expect(run.heartbeats()).toBe(2)
  })

  it('enqueues children, and receives the error of a refused one', async () => {
    const setup = warm.setup()
    const run = setup.run(tasks.children, { keys: ['a', 'a'] })
    expect(await outputOf(run)).toEqual({ order: [expect.stringMatching(/^created q-/), 'Error: that key is taken'] })
    expect(run.enqueued[0]).toEqual(['test.context', { a: 1 }, { childKey: 'a' }])
  })

  it('registers a compensation and follow-ups', async () => {
    const setup = warm.setup()
    const run = setup.run(tasks.compensated, {})
    await outputOf(run)
    expect(run.registered).toEqual([
      ['compensation', 'test.context', { a: 1 }, { key: 'k' }],
      ['failure', 'test.context', { a: 3 }, undefined],
      ['end', 'test.context', { a: 4 }, { delay: '1s' }],
    ])
    expect(run.followUps).toEqual([['test.context', { a: 2 }, undefined]])
  })

  it('runs a step once with its key, and receives the error of a result that can’t be stored', async () => {
    const setup = warm.setup()
    const run = setup.run(tasks.steps, { steps: ['new', 'done', 'throws', 'cycle', '', 'lost', 'new'] })
    expect(await outputOf(run)).toEqual({
      order: [
        'key of new',
        'before',
        'Error: a step fails',
        'invalid_result',
        'invalid_request',
        'lock_lost',
        'key of new',
      ],
    })
    expect([...run.steps]).toEqual([
      ['done', '"before"'],
      ['new', '"key of new"'],
    ])
  })

  it('may snooze', async () => {
    const setup = warm.setup()
    expect(await setup.run(tasks.snoozing).outcome).toEqual({ kind: 'snoozed', delayMs: 600_000 })
  })

  it('may throttle its concurrency key', async () => {
    const setup = warm.setup()
    const outcome = { kind: 'rate_limited', delayMs: 30_000, of: 'concurrencyKey' }
    expect(await setup.run(tasks.limited).outcome).toEqual(outcome)
  })

  it('reports progress, and continues when the progress is stored', async () => {
    const setup = warm.setup()
    const run = setup.run(tasks.progress, { fractions: [0.1, 0.9, 2] })
    expect(await outputOf(run)).toEqual({
      order: [
        'stored 0.1',
        'Error: the store is away',
        'RangeError: invalid progress: expected a fraction from 0 to 1, got 2',
      ],
    })
    expect(run.progress).toEqual([
      { fraction: 0.1, note: 'so far' },
      { fraction: 0.9, note: 'so far' },
    ])
  })

  it('logs through its attempt with errors as errors, and never fails because of a log line', async () => {
    const setup = warm.setup()
    const run = setup.run(tasks.log)
    await outputOf(run)
    expect(run.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      'debug d',
      'info i',
      'warn w',
      'error e',
    ])
    const [debug, info, warn, error] = run.lines
    expect(debug).toMatchObject({ big: '1', at: '1970-01-01T00:00:00.000Z' })
    expect(info?.['cycle']).toEqual({ self: '[circular]' })
    expect(warn?.['err']).toBeInstanceOf(Error)
    expect(warn?.['err']).toMatchObject({ name: 'TypeError', message: 'bad', code: 'E_BAD', cause: { message: 'why' } })
    expect(error).toMatchObject({ nested: { err: { name: 'Error', message: 'deep' } } })
  })

  it('receives its signal: timers, fetch and checkpoints end with the given reason', async () => {
    const setup = warm.setup()
    await using server = await silentServer()
    for (const way of ['timer', 'fetch', 'checkpoint']) {
      const run = setup.run(tasks.wait, { for: way, url: server.url })
      await run.logged('waiting')
      run.signal(new DOMException('the run limit of 5 ms passed', 'TimeoutError'))
      run.signal(new Error('a second one changes nothing'))
      const { reason } = await outputOf<{ reason: string }>(run)
      expect(reason).toMatch(/(AbortError|TimeoutError).*; true TimeoutError: the run limit of 5 ms passed$/)
    }
  })

  it('starts with an aborted signal when the signal came first', async () => {
    const setup = warm.setup()
    const run = setup.run(tasks.wait, { for: 'timer' })
    run.signal(new DOMException('too late already', 'AbortError'))
    expect(await outputOf(run)).toEqual({ reason: expect.stringContaining('AbortError: too late already') })
  })

  it('uses the resources that its isolate opened once', async () => {
    await using setup = openSetup(isolation, { resources: new URL('./resources.fixture.ts', import.meta.url).href })
    const expected = { first: 1, second: 'second, after 1' }
    expect(await outputOf(setup.run(tasks.resource))).toMatchObject(expected)
    expect(await outputOf(setup.run(tasks.resource))).toMatchObject(expected)
  })
})

describe.each(ISOLATIONS)('an attempt in a %s', (isolation) => {
  const warm = keepWarm(isolation)

  it('ends as declared, with code, retry and cause', async () => {
    const setup = warm.setup()
    expect(await setup.run(tasks.fail).outcome).toMatchObject({
      kind: 'declared',
      failure: { code: 'bank_away', retryable: true, retryAfterMs: 5_000 },
      error: {
        name: 'TaskError',
        message: 'the bank is away',
        stack: expect.stringContaining('handlers.fixture.ts'),
        cause: { message: 'no route' },
      },
    })
    expect(await setup.run(tasks.classified).outcome).toMatchObject({
      kind: 'declared',
      failure: { code: 'out_of_range', retryable: false },
      error: { name: 'RangeError', message: 'too far' },
    })
    expect(await setup.run(tasks.where, { n: 1 }).outcome).toMatchObject({
      kind: 'declared',
      failure: { code: 'invalid_input', retryable: false },
      error: { message: expect.stringContaining('input.n: ') },
    })
  })

  it('ends as a panic, with name, message, stack and cause', async () => {
    await using setup = openSetup(isolation)
    expect(await setup.run(tasks.panic, { what: 'error' }).outcome).toMatchObject({
      kind: 'panicked',
      reason: 'unexpected_error',
      error: {
        name: 'TypeError',
        message: 'undeclared',
        stack: expect.stringContaining('handlers.fixture.ts'),
        cause: { name: 'RangeError', message: 'the cause' },
      },
    })
    expect(await setup.run(tasks.panic, { what: 'text' }).outcome).toMatchObject({
      reason: 'unexpected_error',
      error: { message: expect.stringContaining('"a text"') },
    })
    expect(await setup.run(tasks.badClassifier).outcome).toMatchObject({
      reason: 'unexpected_error',
      error: {
        message: expect.stringContaining('a classifier that throws'),
        cause: { message: 'a classifier that throws' },
      },
    })
    expect(setup.replaced).toEqual([])
  })

  it.each([
    ['wrong', 'the output of test.output does not match the schema in its definition: output: Invalid input'],
    ['bigint', 'the output of test.output cannot be stored as JSON: output.n: Do not know how to serialize a BigInt'],
    ['cycle', 'the output of test.output cannot be stored as JSON: output.self: Converting circular structure to JSON'],
  ])('ends as a panic when its output can’t be stored: %s', async (what, why) => {
    const setup = warm.setup()
    const outcome = await setup.run(tasks.output, { what }).outcome
    expect(outcome).toMatchObject({ kind: 'panicked', reason: 'invalid_output', error: { name: 'TypeError' } })
    expect(String('error' in outcome && outcome.error)).toContain(why)
    expect(await outputOf(setup.run(tasks.output, { what: 'date' }))).toBe(new Date(0).toJSON())
    expect(await outputOf(setup.run(tasks.output, { what: 'nothing' }))).toBe(undefined)
    expect(await outputOf(setup.run(tasks.output, { what: 'function' }))).toEqual({})
  })

  it.each(['timer', 'text', 'rejection', 'forgotten', 'listener'])(
    'ends as a panic when an error escapes it by a %s, and its isolate is replaced',
    async (how) => {
      await using setup = openSetup(isolation)
      const before = await outputOf<Place>(setup.run(tasks.where))
      const run = setup.run(tasks.escaping, { how })
      if (how === 'listener') {
        await run.logged('listening')
        run.signal(new DOMException('over', 'AbortError'))
      }
      const outcome = await run.outcome
      expect(outcome).toMatchObject({ kind: 'panicked', reason: 'escaped_error' })
      expect(outcome).toMatchObject({ error: how === 'text' ? { message: NOT_AN_ERROR } : { name: 'TypeError' } })
      const after = await outputOf<Place>(setup.run(tasks.where))
      expect([after.pid, after.thread]).not.toEqual([before.pid, before.thread])
      expect(setup.replaced).toMatchObject([{ isolation, cause: 'escaped_error' }])
    },
  )

  it.each([0, 7])('ends as a panic when it exits with code %i, and nothing else ends', async (code) => {
    await using setup = openSetup(isolation)
    const run = setup.run(tasks.exit, { code })
    expect(await run.outcome).toMatchObject({
      kind: 'panicked',
      reason: 'isolate_died',
      error: { message: expect.stringMatching(new RegExp(`^${isolation} \\d+ exited with code ${code}$`)) },
    })
    expect(run.lines).toMatchObject([{ message: 'exiting' }])
    await outputOf(setup.run(tasks.where))
    expect(setup.replaced).toMatchObject([{ cause: 'isolate_died', of: { task: 'test.exit' } }])
  })

  it('can be killed while it loops, and 50 others run undisturbed', async () => {
    await using setup = openSetup(isolation, { threads: { max: 2 }, processes: { max: 2 } })
    const looping = setup.run(tasks.loop)
    await looping.logged('looping')
    const others = await Promise.all(Array.from({ length: 50 }, () => outputOf<Place>(setup.run(tasks.where))))
    expect(new Set(others.map(({ pid, thread }) => `${pid}:${thread}`)).size).toBe(1)
    looping.signal(new DOMException('too slow', 'TimeoutError'))
    looping.kill()
    looping.kill()
    expect(await looping.outcome).toMatchObject({ reason: 'isolate_died', error: { message: /was killed/ } })
    expect(setup.replaced).toMatchObject([{ cause: 'killed', of: { id: looping.task.id } }])
  })
})

describe.each(ISOLATIONS)('a %s', (isolation) => {
  it('is replaced by none of a thousand ordinary tasks', async () => {
    await using setup = openSetup(isolation)
    const module = new URL('./ordinary.fixture.ts', import.meta.url).href
    for (let input = 0; input < 1_000; input++) await outputOf(setup.run(ordinary, input, { module }))
    expect(setup.own.lines).toEqual([])
    expect(setup.replaced).toEqual([])
  })
})

describe.each(ISOLATIONS)('what an attempt leaves behind in a %s', (isolation) => {
  it.each(['throw', 'reject', 'exit'])(
    'is attributed to no other attempt (%s), and its isolate is replaced',
    async (what) => {
      await using setup = openSetup(isolation)
      const guilty = setup.run(tasks.leave, { what })
      await outputOf(guilty)
      const next = await outputOf<Place>(setup.run(tasks.trigger))
      const { err, ...line } = await setup.own.logged('uncaught error of a task that had ended')
      expect(line).toMatchObject({ level: 'error', id: guilty.task.id, task: 'test.leave', fencingToken: 1 })
      expect(String(err)).toMatch(what === 'exit' ? /process.exit\(9\)/ : /left behind/)
      const third = await outputOf<Place>(setup.run(tasks.where))
      expect([third.pid, third.thread]).not.toEqual([next.pid, next.thread])
      expect(setup.replaced).toMatchObject([{ cause: 'late_escape' }])
    },
  )

  it('is logged with its own task id, and its progress is dropped', async () => {
    await using setup = openSetup(isolation)
    const guilty = setup.run(tasks.leave, { what: 'log' })
    await outputOf(guilty)
    const next = setup.run(tasks.trigger)
    await outputOf(next)
    expect(setup.own.lines).toMatchObject([{ level: 'warn', message: 'said late', a: 1, id: guilty.task.id }])
    await outputOf(setup.run(tasks.leave, { what: 'progress' }))
    const last = setup.run(tasks.trigger)
    await outputOf(last)
    expect([next, last].flatMap(({ lines, progress }) => [...lines, ...progress])).toEqual([])
  })

  it('has its isolate replaced also while nothing runs', async () => {
    await using setup = openSetup(isolation)
    const guilty = setup.run(tasks.idleEscape)
    await outputOf(guilty)
    expect(await setup.own.logged('uncaught error')).toMatchObject({ id: guilty.task.id })
    await eventually(() => setup.replaced.length === 1)
    expect(setup.replaced).toMatchObject([{ cause: 'late_escape', of: undefined }])
  })
})

/** Keeps an isolate for all tests of a group that leave it as they found it, because starting one takes longer than such a test. */
function keepWarm(isolation: IsolatedTask['isolation']) {
  let shared: ReturnType<typeof openSetup>
  beforeAll(() => {
    shared = openSetup(isolation)
    return async () => {
      await shared[Symbol.asyncDispose]()
      expect(shared.replaced).toEqual([])
    }
  })
  return { setup: () => openSetup(isolation, {}, shared.isolator) }
}

/** A server that takes requests and never responds. */
async function silentServer() {
  const server = createServer(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
