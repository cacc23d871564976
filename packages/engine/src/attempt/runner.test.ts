import {
  defineCatalogue,
  defineHandler,
  defineTask,
  type Log,
  type TaskContext,
  TaskError,
  type TaskEvent,
} from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sha256 } from '../node/index.ts'
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { Attempt } from './attempt.ts'
import type { Middleware } from './middleware.ts'
import { createRegistry } from './registry.ts'
import { RunSlot } from './run-slot.fixture.ts'
import type { RunnerHost } from './runner.ts'
import { stepsInMemory } from './steps.fixture.ts'
import { DEFAULT_TIMEOUTS } from './timeouts.ts'
import { attributeUncaught } from './uncaught.ts'

const schemas = { input: z.object({ n: z.int().default(1) }), output: z.looseObject({ n: z.int() }) }
const short = defineTask({ name: 'test.short', queue: 'q', kind: 'short', ...schemas })
const long = defineTask({ name: 'test.long', queue: 'q', timeout: '100ms', grace: '50ms', ...schemas })
const patient = defineTask({ name: 'test.patient', queue: 'q', timeout: 'none', grace: 'none', ...schemas })
const inheriting = defineTask({ name: 'test.inheriting', queue: 'q', ...schemas })
const beating = defineTask({
  name: 'test.beating',
  queue: 'q',
  timeout: '1s',
  heartbeatTimeout: '100ms',
  grace: '50ms',
  ...schemas,
})
const mortal = defineTask({
  name: 'test.mortal',
  queue: 'q',
  timeout: '300ms',
  totalTimeout: '400ms',
  grace: '50ms',
  ...schemas,
})
const throwing = defineTask({
  name: 'test.throwing',
  queue: 'q',
  input: z.unknown().transform(() => {
    throw new TypeError('no URL')
  }),
  output: schemas.output,
})
const classified = defineTask({
  name: 'test.classified',
  queue: 'q',
  ...schemas,
  classify: (error) => {
    if (error === 'unclassifiable') throw new Error('lost')
    if (error instanceof RangeError) return { code: 'out_of_stock', retryable: false }
    return error instanceof Error && 'code' in error ? 'panic' : undefined
  },
})
const catalogue = defineCatalogue(short, long, patient, inheriting, classified, beating, mortal, throwing)

const circular: { n: number; self?: unknown } = { n: 1 }
circular.self = circular

type Handle = (context: TaskContext) => unknown
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A world of its own for each test: every task runs the same handler. */
function world(handle: Handle, middleware: readonly Middleware[] = []) {
  const clock = fakeClock()
  const events: TaskEvent[] = []
  const enqueued: NewTask[] = []
  const pool = new AbortController()
  let running: Attempt | undefined
  // Handlers misbehave here on purpose, in ways that their types refuse.
  const any = handle as never
  const handlers = {
    'test.short': defineHandler(short, import.meta.url, any),
    'test.long': defineHandler(long, import.meta.url, any),
    'test.patient': defineHandler(patient, import.meta.url, any),
    'test.inheriting': defineHandler(inheriting, import.meta.url, any),
    'test.classified': defineHandler(classified, import.meta.url, any),
    'test.beating': defineHandler(beating, import.meta.url, any),
    'test.mortal': defineHandler(mortal, import.meta.url, any),
    'test.throwing': defineHandler(throwing, import.meta.url, any),
  }
  const host: RunnerHost = {
    registry: createRegistry(catalogue, handlers, {
      middleware,
      timeouts: { ...DEFAULT_TIMEOUTS, timeoutMs: 1_000, graceMs: 200 },
    }),
    context: {
      run: (attempt, code) => {
        running = attempt
        return code(attempt)
      },
      current: () => running,
    },
    clock,
    random: () => 0.5,
    sink: (event) => events.push(event),
    queue: 'q',
    enqueue: async (task) => {
      enqueued.push(task)
      return { id: task.id, action: 'created' }
    },
    sha256,
    maxOutputBytes: 1_000,
    worker: 'host:1',
    poolSignal: pool.signal,
    resources: { greeting: 'hello' },
    logFor: () => silent,
  }
  const progress: unknown[] = []
  const slot = new RunSlot(host)
  const take = async (task: string, envelope: object = {}, counts: Partial<FetchedTask> = {}): Promise<AttemptResult> =>
    slot.run({
      id: createTaskId('q', 1, new Uint8Array(10)),
      task,
      envelope: { v: 2, version: 1, input: {}, ...envelope },
      enqueuedAt: clock.now() - 20,
      fencingToken: 1,
      attempt: 1,
      maxAttempts: 3,
      readyAt: clock.now() - 20,
      progress: async (at) => void progress.push(at),
      steps: stepsInMemory().steps,
      ...counts,
    })
  return {
    clock,
    events,
    slot,
    stuckHandlers: slot.stuckHandlers,
    enqueued,
    pool,
    take,
    progress,
    context: host.context,
  }
}

const named = (events: readonly TaskEvent[]): string[] => events.map(({ event }) => event)

describe.each(['test.short', 'test.long'])('an attempt of %s', (task) => {
  it('ends as DONE_SUCCESS with the parsed output', async () => {
    const { take, events } = world(({ input }) => input)
    const { record, verdict } = await take(task, { input: { n: 7 } })
    expect(record).toMatchObject({ state: 'DONE_SUCCESS', fencingToken: 1, attempt: 1, worker: 'host:1' })
    expect(verdict).toEqual({ kind: 'completed', output: { n: 7 } })
    expect(events).toMatchObject([
      { event: 'attempt.started', waitedMs: 20 },
      { event: 'attempt.ended', state: 'DONE_SUCCESS', verdict: 'completed', taskMs: 20 },
    ])
  })

  it('awaits the promise of an asynchronous handler', async () => {
    const { take } = world(async () => ({ n: 2 }))
    expect((await take(task)).verdict).toEqual({ kind: 'completed', output: { n: 2 } })
  })

  it('awaits thenables that are not promises, such as query builders', async () => {
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
    const { take } = world(() => ({ n: 0, then: (resolve: (value: object) => void) => resolve({ n: 3 }) }))
    expect((await take(task)).verdict).toEqual({ kind: 'completed', output: { n: 3 } })
  })

  it('gives the handler its parsed input, numbers, times and resources', async () => {
    let seen: TaskContext | undefined
    const { take, clock, pool } = world((context) => {
      seen = context
      return { n: 1 }
    })
    await take(task, { meta: { tenant: 'a' }, correlationId: 'c-1' }, { fencingToken: 4, attempt: 2 })
    expect(seen).toMatchObject({
      name: task,
      input: { n: 1 },
      fencingToken: 4,
      attempt: 2,
      meta: { tenant: 'a' },
      correlationId: 'c-1',
    })
    expect(seen?.enqueuedAt).toEqual(new Date(clock.now() - 20))
    expect(seen?.startedAt).toEqual(new Date(clock.now()))
    expect(seen?.resources).toEqual({ greeting: 'hello' })
    expect(seen?.poolSignal).toBe(pool.signal)
  })

  it.each([
    [
      'throws',
      () => {
        throw new TypeError('boom')
      },
    ],
    [
      'rejects',
      async () => {
        throw new TypeError('boom')
      },
    ],
  ])('ends as RECOVER_ERR (unexpected_error) when the handler %s', async (_, handle) => {
    const { take } = world(handle)
    const { record, verdict, error } = await take(task)
    expect(record).toMatchObject({ state: 'RECOVER_ERR', reason: 'unexpected_error', message: 'TypeError: boom' })
    expect(verdict).toMatchObject({ kind: 'retrying', delayMs: 1_000 })
    expect(error).toBeInstanceOf(TypeError)
  })

  it.each([[undefined], [null], ['text'], [Symbol('s')], [{ a: 1n }]])(
    'survives a handler that throws %s',
    async (thrown) => {
      const { take } = world(() => {
        throw thrown
      })
      expect((await take(task)).record).toMatchObject({ state: 'RECOVER_ERR', reason: 'unexpected_error' })
    },
  )

  it('ends as RECOVER_ERR (invalid_output) with the path when the output does not fit its definition', async () => {
    const { take } = world(() => ({ n: 'seven' }))
    const { record } = await take(task)
    expect(record).toMatchObject({
      state: 'RECOVER_ERR',
      reason: 'invalid_output',
      message: expect.stringContaining('output.n'),
    })
  })

  it.each([
    [
      'too large',
      () => ({ n: 1, text: 'x'.repeat(1_000) }),
      /takes 10\d\d bytes as JSON; the limit is 1000 bytes \(BULLPEN_WORKER_MAX_OUTPUT_BYTES/,
    ],
    ['circular', () => circular, /cannot be stored as JSON: output.self.self: .*circular/],
    ['with a bigint', () => ({ n: 1, big: 1n }), /cannot be stored as JSON: output.big: .*BigInt/],
  ])('ends as RECOVER_ERR (invalid_output) when the output is %s', async (_, handle, message) => {
    const { take } = world(handle)
    const { record } = await take(task)
    expect(record).toMatchObject({
      state: 'RECOVER_ERR',
      reason: 'invalid_output',
      message: expect.stringMatching(message),
    })
  })

  it('ends as DONE_ERROR with its own code when the handler declares a failure', async () => {
    const { take } = world(() => {
      throw new TaskError('no_such_user', 'gone', { retryable: false })
    })
    const { record, verdict } = await take(task)
    expect(record).toMatchObject({ state: 'DONE_ERROR', code: 'no_such_user', message: 'gone' })
    expect(record.reason).toBeUndefined()
    expect(verdict).toEqual({ kind: 'dead' })
  })

  it('is dead after its last attempt', async () => {
    const { take } = world(() => {
      throw new Error('boom')
    })
    expect((await take(task, {}, { attempt: 3 })).verdict).toEqual({ kind: 'dead' })
  })
})

describe('a thrown error that is not a TaskError', () => {
  const enoent = Object.assign(new Error('no such file'), { code: 'ENOENT' })
  const throwing = (error: unknown) =>
    world(() => {
      throw error
    })

  it('is a declared failure when the default classifier knows it', async () => {
    expect(await throwing(enoent).take('test.short')).toMatchObject({
      record: { state: 'DONE_ERROR', code: 'enoent', message: 'no such file' },
      verdict: { kind: 'dead' },
    })
  })

  it('becomes what the definition’s classifier returns, including a panic', async () => {
    expect((await throwing(new RangeError('sold out')).take('test.classified')).record).toMatchObject({
      state: 'DONE_ERROR',
      code: 'out_of_stock',
    })
    expect((await throwing(enoent).take('test.classified')).record).toMatchObject({
      state: 'RECOVER_ERR',
      reason: 'unexpected_error',
    })
    expect((await throwing(new Error('x', { cause: enoent })).take('test.classified')).record).toMatchObject({
      code: 'enoent',
    })
  })

  it('is a panic when the classifier itself throws', async () => {
    const { record } = await throwing('unclassifiable').take('test.classified')
    expect(record).toMatchObject({
      state: 'RECOVER_ERR',
      message: expect.stringContaining('classifier of test.classified threw'),
    })
  })
})

describe('an error that is hard to read', () => {
  const unreadable = (property: string) =>
    Object.defineProperty(new Error('x'), property, {
      get() {
        throw new Error('no')
      },
    })
  it.each([
    ['its message throws', unreadable('message')],
    ['its name throws', unreadable('name')],
    ['its name is a symbol', Object.assign(new Error('x'), { name: Symbol('s') })],
    [
      'it is a Proxy that throws',
      new Proxy(new Error('x'), {
        get: () => {
          throw new Error('no')
        },
      }),
    ],
  ])('still ends its attempt: %s', async (_, error) => {
    const { take, events } = world(() => {
      throw error
    })
    expect((await take('test.short')).record).toMatchObject({ state: 'RECOVER_ERR', reason: 'unexpected_error' })
    expect(named(events)).toEqual(['attempt.started', 'attempt.ended'])
  })

  it('is stored with the beginning of its message', async () => {
    const { take } = world(() => {
      throw new Error('x'.repeat(1e6))
    })
    expect((await take('test.short')).record.message?.length).toBeLessThan(2_100)
  })
})

describe('a task that cannot be decoded', () => {
  it('is left to another worker when its definition is unknown: a newer worker may have it', async () => {
    const { take, events } = world(() => ({ n: 1 }))
    const { record, verdict } = await take('test.unheard')
    expect(record).toMatchObject({ state: 'DONE_ERROR', code: 'unknown_task', counted: false })
    expect(verdict.kind).toBe('snoozed')
    expect(named(events)).toEqual(['attempt.started', 'attempt.ended'])
  })

  it('is dead at once when its input does not fit, unless a newer definition wrote it', async () => {
    const { take } = world(() => ({ n: 1 }))
    expect(await take('test.short', { input: { n: 'x' } })).toMatchObject({
      record: { state: 'DONE_ERROR', code: 'invalid_input', message: expect.stringContaining('input.n') },
      verdict: { kind: 'dead' },
    })
    expect((await take('test.short', { input: { n: 'x' }, version: 2 })).verdict.kind).toBe('snoozed')
  })

  it('is dead at once when its schema throws', async () => {
    const { take } = world(() => ({ n: 1 }))
    expect(await take('test.throwing')).toMatchObject({
      record: { code: 'invalid_input', message: expect.stringContaining('threw: TypeError') },
      verdict: { kind: 'dead' },
    })
  })

  it('is dead at once when its envelope is malformed, unless a newer producer wrote it', async () => {
    const { take } = world(() => ({ n: 1 }))
    expect(await take('test.short', { version: 'one' })).toMatchObject({
      record: { code: 'unreadable_envelope' },
      verdict: { kind: 'dead' },
    })
    expect(await take('test.short', { v: 3 })).toMatchObject({
      record: { code: 'unreadable_envelope' },
      verdict: { kind: 'snoozed' },
    })
  })

  it('is dead at once when Bullpen 0.1.0 wrote its envelope, and the message names that version', async () => {
    const { take } = world(() => ({ n: 1 }))
    expect(await take('test.short', { v: 1 })).toMatchObject({
      record: { code: 'unreadable_envelope', message: expect.stringContaining('the version of Bullpen 0.1.0') },
      verdict: { kind: 'dead' },
    })
  })
})

describe('a run timeout', () => {
  it('signals the handler, and ends the attempt as TERMINATED_TIMEOUT as soon as the handler has ended', async () => {
    const { take, clock, slot } = world(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const ended = take('test.long')
    expect(slot.interruption).toBeDefined()
    await clock.advance(99)
    expect(slot.interruption).toBeDefined()
    await clock.advance(1)
    const { record, verdict } = await ended
    expect(record).toMatchObject({
      state: 'TERMINATED_TIMEOUT',
      reason: 'run_timeout',
      message: expect.stringContaining('100ms'),
    })
    expect(verdict.kind).toBe('retrying')
    expect(slot.interruption).toBeUndefined()
    expect(clock.pending()).toBe(0)
  })

  it('frees the slot after the grace period when the handler ignores its signal; its later result is dropped and reported', async () => {
    const late = Promise.withResolvers<object>()
    const { take, clock, events } = world(() => late.promise)
    const ended = take('test.long')
    await clock.advance(150)
    expect((await ended).record).toMatchObject({ state: 'TERMINATED_TIMEOUT' })
    await clock.advance(1_000)
    late.resolve({ n: 1 })
    await clock.advance(0)
    expect(events.at(-1)).toMatchObject({ event: 'attempt.late', overrunMs: 1_050 })
    expect(named(events).filter((name) => name === 'attempt.ended')).toHaveLength(1)
  })

  it('decides the end at the signal: output within the grace period is a late result', async () => {
    const { take, clock, events } = world(
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ n: 1 }))),
    )
    const ended = take('test.long')
    await clock.advance(100)
    expect((await ended).record.state).toBe('TERMINATED_TIMEOUT')
    expect(named(events)).toContain('attempt.late')
  })

  it('is the caller’s, or else the definition’s, or else the pool’s', async () => {
    const { take, clock } = world(({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
    const own = take('test.long', { timeoutMs: 30 })
    await clock.advance(30)
    expect((await own).record.message).toContain('30ms')
    const pools = take('test.inheriting')
    await clock.advance(1_000)
    expect((await pools).record.message).toContain('1s')
  })

  it('never passes for a task without one, or for a short task', async () => {
    const { take, clock, slot } = world(() => new Promise(() => {}))
    void take('test.patient')
    void take('test.short')
    await clock.advance(1e9)
    expect(slot.interruption).toBeDefined()
    expect(clock.pending()).toBe(0)
  })

  it('leaves no timer behind when the handler ends in time', async () => {
    const { take, clock } = world(async () => ({ n: 1 }))
    await take('test.long')
    expect(clock.pending()).toBe(0)
  })
})

describe('a heartbeat', () => {
  let steps = 0
  const untilAborted = ({ signal }: TaskContext) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

  it('that is missed ends the attempt as TERMINATED_TIMEOUT (heartbeat_timeout)', async () => {
    const { take, clock } = world(untilAborted)
    const ended = take('test.beating')
    await clock.advance(100)
    expect((await ended).record).toMatchObject({
      state: 'TERMINATED_TIMEOUT',
      reason: 'heartbeat_timeout',
      message: expect.stringContaining('100ms'),
    })
    expect(clock.pending()).toBe(0)
  })

  it.each([
    ['heartbeat()', (context: TaskContext) => context.heartbeat()],
    ['checkpoint()', (context: TaskContext) => context.checkpoint()],
    ['progress()', (context: TaskContext) => context.progress(0.5)],
    ['once()', (context: TaskContext) => context.once(`${steps++}`, () => 1)],
  ])('is any sign of life, %s too, until the run timeout comes', async (_, live) => {
    let context: TaskContext | undefined
    const { take, clock } = world((given) => {
      context = given
      return untilAborted(given)
    })
    const ended = take('test.beating')
    for (let at = 0; at < 990; at += 90) {
      await clock.advance(90)
      if (context !== undefined) await live(context)
    }
    await clock.advance(10)
    expect((await ended).record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
  })
})

describe('a total timeout', () => {
  it('that has passed before the first attempt ends the task as expired, and starts no handler', async () => {
    let called = false
    const { take, clock, events } = world(() => {
      called = true
      return { n: 1 }
    })
    await clock.advance(400)
    const { record, verdict } = await take('test.mortal', {}, { enqueuedAt: clock.now() - 400 })
    expect(record).toMatchObject({
      state: 'TERMINATED_TIMEOUT',
      reason: 'total_timeout',
      fencingToken: 0,
      counted: false,
    })
    expect(verdict).toEqual({ kind: 'expired' })
    expect(called).toBe(false)
    expect(named(events)).toEqual(['attempt.started', 'attempt.ended'])
  })

  it('that passes between two attempts leaves the task dead', async () => {
    const { take, clock } = world(() => ({ n: 1 }))
    await clock.advance(400)
    const { record, verdict } = await take('test.mortal', {}, { enqueuedAt: clock.now() - 400, fencingToken: 2 })
    expect(record).toMatchObject({ reason: 'total_timeout', fencingToken: 2, counted: true })
    expect(verdict).toEqual({ kind: 'dead' })
  })

  it('that passes before the run timeout ends the attempt and the task', async () => {
    const { take, clock } = world(() => new Promise(() => {}))
    const ended = take('test.mortal', {}, { enqueuedAt: clock.now() - 250 })
    await clock.advance(200)
    const { record, verdict } = await ended
    expect(record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'total_timeout' })
    expect(verdict).toEqual({ kind: 'dead' })
  })

  it('is the caller’s when the caller sets one', async () => {
    const { take, clock } = world(() => new Promise(() => {}))
    const ended = take('test.patient', { totalMs: 100 }, { enqueuedAt: clock.now() })
    await clock.advance(100)
    void ended
    expect(clock.pending()).toBe(0)
  })
})

describe('a checkpoint', () => {
  it('throws the abort reason when the attempt is to end, which is not a late result', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { take, clock, events } = world(async ({ checkpoint, signal }) => {
      signal.addEventListener('abort', () => resolve())
      checkpoint()
      await promise
      checkpoint()
      return { n: 1 }
    })
    const ended = take('test.long')
    await clock.advance(100)
    expect((await ended).record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
    expect(named(events)).not.toContain('attempt.late')
  })

  it('of a short task throws when its pool reaches its drain deadline', async () => {
    const { take, pool } = world(({ checkpoint }) => {
      checkpoint()
      return { n: 1 }
    })
    expect((await take('test.short')).record.state).toBe('DONE_SUCCESS')
    pool.abort()
    expect((await take('test.short')).record.message).toContain('AbortError')
  })
})

describe('an uncaught error', () => {
  it('ends a long attempt as RECOVER_ERR (escaped_error), signals its handler, and drops what it returns', async () => {
    const { take, clock, context, events } = world(
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ n: 1 }))),
    )
    const ended = take('test.patient')
    await clock.advance(0)
    expect(attributeUncaught(new TypeError('lost'), context)).toBe('attributed')
    const { record, verdict } = await ended
    expect(record).toMatchObject({ state: 'RECOVER_ERR', reason: 'escaped_error', message: 'TypeError: lost' })
    expect(verdict.kind).toBe('retrying')
    expect(named(events)).toContain('attempt.late')
  })

  it('becomes the outcome of a short attempt when its handler ends, whatever it returned', async () => {
    const { promise, resolve } = Promise.withResolvers<object>()
    const { take, context } = world(() => promise)
    const ended = take('test.short')
    expect(attributeUncaught('first', context)).toBe('attributed')
    expect(attributeUncaught('second', context)).toBe('attributed')
    resolve({ n: 1 })
    expect((await ended).record).toMatchObject({
      state: 'RECOVER_ERR',
      reason: 'escaped_error',
      message: expect.stringContaining('first'),
    })
  })

  it('changes nothing after its attempt has ended, and is unattributed when no attempt is running', async () => {
    const { take, context } = world(() => ({ n: 1 }))
    expect(attributeUncaught(new Error('x'), context)).toBe('unattributed')
    await take('test.long')
    expect(attributeUncaught(new Error('x'), context)).toBe('late')
  })
})

describe('a closed context', () => {
  it('requeues the task as TERMINATED_CTX_CLOSED (drain) when the handler stops', async () => {
    const { take, clock, slot } = world(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const ended = take('test.patient', {}, { attempt: 3 })
    slot.interruption?.close('drain')
    await clock.advance(0)
    const { record, verdict } = await ended
    expect(record).toMatchObject({ state: 'TERMINATED_CTX_CLOSED', reason: 'drain' })
    expect(verdict).toEqual({ kind: 'requeued' })
  })

  it('accepts valid output within the grace period, because its effect has happened', async () => {
    const { take, slot, events } = world(
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ n: 9 }))),
    )
    const ended = take('test.long')
    slot.interruption?.close('drain')
    expect((await ended).verdict).toEqual({ kind: 'completed', output: { n: 9 } })
    expect(named(events)).not.toContain('attempt.late')
  })

  it('closed twice, or after a timeout, keeps the first reason', async () => {
    const { take, clock, slot } = world(() => new Promise(() => {}))
    const ended = take('test.long')
    const attempt = slot.interruption
    await clock.advance(100)
    attempt?.close('drain')
    attempt?.close('drain')
    await clock.advance(50)
    expect((await ended).record).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
  })
})

describe('the context of a handler', () => {
  it('creates its signal when it is first read, aborted if the attempt has been interrupted', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let signal: AbortSignal | undefined
    const { take, clock } = world(async (context) => {
      await promise
      signal = context.signal
      return { n: 1 }
    })
    const ended = take('test.long')
    await clock.advance(100)
    resolve()
    await ended
    expect(signal?.aborted).toBe(true)
    expect(signal?.reason).toMatchObject({ name: 'TimeoutError' })
  })

  it('gives a short task the pool’s signal', async () => {
    let signal: AbortSignal | undefined
    const { take, pool } = world((context) => {
      signal = context.signal
      return { n: 1 }
    })
    await take('test.short')
    expect(signal).toBe(pool.signal)
  })

  it('reports progress while it runs, and not after its attempt has ended', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { take, clock, progress } = world(async (context) => {
      await context.progress(0.5, 'half')
      await promise
      await context.progress(1)
      return { n: 1 }
    })
    const ended = take('test.long')
    await clock.advance(150)
    await ended
    resolve()
    await clock.advance(0)
    expect(progress).toEqual([{ fraction: 0.5, note: 'half' }])
  })

  it('refuses progress that is not a fraction', async () => {
    const { take } = world(async (context) => {
      await context.progress(50)
      return { n: 1 }
    })
    expect((await take('test.short')).record.message).toContain('fraction from 0 to 1, got 50')
  })
})

describe('middleware', () => {
  it('wraps every attempt, the first outermost, and may fail it', async () => {
    const order: string[] = []
    const around =
      (name: string): Middleware =>
      async (_, next) => {
        order.push(`${name} in`)
        const result = await next()
        order.push(`${name} out`)
        return result
      }
    const { take } = world(() => {
      order.push('handler')
      return { n: 1 }
    }, [around('a'), around('b')])
    expect((await take('test.short')).record.state).toBe('DONE_SUCCESS')
    expect(order).toEqual(['a in', 'b in', 'handler', 'b out', 'a out'])

    const failing = world(
      () => ({ n: 1 }),
      [
        async () => {
          throw new Error('no transaction')
        },
      ],
    )
    expect((await failing.take('test.long')).record).toMatchObject({
      state: 'RECOVER_ERR',
      message: 'Error: no transaction',
    })
  })
})

describe('the registry', () => {
  const handle = () => ({ n: 1 })
  it('refuses a missing handler, one of another task, and an isolation that is not offered', () => {
    const one = defineCatalogue(short)
    expect(() => createRegistry(one, {} as never)).toThrow(expect.objectContaining({ code: 'invalid_handler' }))
    expect(() => createRegistry(one, undefined as never)).toThrow(/expected an object with one handler/)
    expect(() => createRegistry(one, { 'test.short': handle } as never)).toThrow(/was not created with defineHandler/)
    const right = defineHandler(short, import.meta.url, handle)
    expect(() => createRegistry(one, { 'test.short': right, 'test.shrt': right } as never)).toThrow(
      /has no task with this name/,
    )
    const other = { 'test.short': defineHandler(long, import.meta.url, handle) } as never
    expect(() => createRegistry(one, other)).toThrow(/test\.short was defined for test\.long/)
    const isolated = defineTask({ name: 'test.isolated', queue: 'q', isolation: 'thread', ...schemas })
    const handlers = { 'test.isolated': defineHandler(isolated, import.meta.url, handle) }
    expect(() => createRegistry(defineCatalogue(isolated), handlers)).toThrow(
      expect.objectContaining({ code: 'isolation_unavailable' }),
    )
  })
})
