// A pool without Redis for tests. The test provides the tasks and ends the handlers, and time comes from a fake clock.
import {
  type CommitRefusal,
  type Duration,
  defineCatalogue,
  defineHandler,
  defineTask,
  type Log,
  type TaskContext,
  type TaskEvent,
} from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { type FakeClock, fakeClock } from '@bullpen/testkit'
import { z } from 'zod'
import type { Attempt } from '../attempt/attempt.ts'
import { createRegistry } from '../attempt/registry.ts'
import { RunSlot } from '../attempt/run-slot.fixture.ts'
import { stepsInMemory } from '../attempt/steps.fixture.ts'
import { DEFAULT_TIMEOUTS } from '../attempt/timeouts.ts'
import { attributeUncaught, type UncaughtFate } from '../attempt/uncaught.ts'
import { sha256 } from '../node/index.ts'
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { Consumer, ConsumerHost, FetchedTask, RunTask } from '../ports/consumer.ts'
import { createPool } from './pool.ts'
import type { PoolOptions } from './pool-types.ts'

const schemas = { input: z.object({ n: z.int().default(1) }), output: z.object({ n: z.int() }) }
const short = defineTask({ name: 'test.short', queue: 'test', kind: 'short', ...schemas })
/** Unless the envelope overrides them, the pool's defaults apply: a timeout of 100 ms and a grace period of 50 ms. */
const long = defineTask({ name: 'test.long', queue: 'test', ...schemas })
const child = defineTask({ name: 'test.child', queue: 'test', ...schemas })
/** A task that fails when it is interrupted, instead of being requeued. */
const fragile = defineTask({ name: 'test.fragile', queue: 'test', onInterrupt: 'fail', ...schemas })
/** A task whose grace period has no limit. */
const patient = defineTask({ name: 'test.patient', queue: 'test', grace: 'none', ...schemas })
export const tasks = { short, long, child }
const catalogue = defineCatalogue(short, long, child, fragile, patient)

export const GRACE_MS = 50
export const TIMEOUT_MS = 100

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A running handler, which the test controls. */
export interface Call {
  readonly context: TaskContext
  /** Returns the reason why the handler's signal aborted, or undefined if the signal has not aborted. */
  abortReason(): Error | undefined
  finish(output?: { n: number }): void
  fail(error: unknown): void
  /** Simulates an uncaught error in the handler. */
  escape(error: unknown): UncaughtFate
  snooze(delay: Duration): void
}

export type Handle = (context: TaskContext) => unknown

/**
 * Creates everything that attempts need, without a pool. By default, every handler waits for the test. Pass `handle` to replace
 * it.
 */
export function stage({ handle }: { readonly handle?: Handle } = {}) {
  const clock: FakeClock = fakeClock()
  const events: TaskEvent[] = []
  const enqueued: NewTask[] = []
  const store = { down: false, losesReplies: false }
  const progress: unknown[] = []
  const calls: Call[] = []

  const wait: Handle = (context) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    let abortReason: Error | undefined
    if (context.signal !== context.poolSignal) {
      context.signal.addEventListener('abort', () => (abortReason = context.signal.reason))
    }
    calls.push({
      context,
      abortReason: () => abortReason,
      finish: (output = { n: 1 }) => resolve(output),
      fail: reject,
      // The fixture's context is always the attempt.
      escape: (error) => attributeUncaught(error, { run: (a, code) => code(a), current: () => context as Attempt }),
      snooze(delay) {
        try {
          context.snooze(delay)
        } catch (asked) {
          reject(asked)
        }
      },
    })
    return promise
  }
  const any = (handle ?? wait) as never
  const handlers = {
    'test.short': defineHandler(short, import.meta.url, any),
    'test.long': defineHandler(long, import.meta.url, any),
    'test.child': defineHandler(child, import.meta.url, any),
    'test.fragile': defineHandler(fragile, import.meta.url, any),
    'test.patient': defineHandler(patient, import.meta.url, any),
  }
  const host: PoolOptions['host'] = {
    registry: createRegistry(catalogue, handlers, {
      timeouts: { ...DEFAULT_TIMEOUTS, timeoutMs: TIMEOUT_MS, graceMs: GRACE_MS },
    }),
    context: { run: (attempt, code) => code(attempt), current: () => undefined },
    clock,
    random: () => 0.5,
    sink: (event) => events.push(event),
    enqueue: async (task) => {
      if (store.down) throw new Error('the store is away')
      const known = enqueued.find(({ id }) => id === task.id)
      enqueued.push(task)
      if (store.losesReplies) throw new Error('the reply is lost')
      const isOwn = known === undefined || JSON.stringify(known.caller) === JSON.stringify(task.caller)
      return { id: task.id, action: isOwn ? 'created' : 'existing' }
    },
    sha256,
    maxOutputBytes: 1_000,
    worker: 'host:1',
    resources: {},
    logFor: () => silent,
  }
  let made = 0
  /** Creates a task as a consumer would have fetched it. */
  const taken = (task: string, envelope: object = {}, given: Partial<FetchedTask> = {}): FetchedTask => ({
    id: createTaskId('test', 1, new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, made >> 8, made++ & 255])),
    task,
    envelope: { v: 2, version: 1, input: {}, ...envelope },
    enqueuedAt: clock.now(),
    fencingToken: 1,
    attempt: 1,
    maxAttempts: 3,
    readyAt: clock.now(),
    progress: async (at) => void progress.push(at),
    steps: stepsInMemory().steps,
    ...given,
  })
  const named = (name: TaskEvent['event']) => events.filter(({ event }) => event === name)
  return { clock, events, named, enqueued, store, progress, calls, host, taken }
}

/** Creates a single slot without a pool, which runs one attempt after another. */
export function soloist(options: { readonly handle?: Handle } = {}) {
  const scene = stage(options)
  const { host, taken } = scene
  const slot = new RunSlot({ ...host, queue: 'test' })
  const { stuckHandlers } = slot
  return {
    ...scene,
    slot,
    stuckHandlers,
    /** Runs one attempt. This is async, so that a handler that returns synchronously looks like the others. */
    run: async (task: string, envelope: object = {}, given: Partial<FetchedTask> = {}): Promise<AttemptResult> =>
      slot.run(taken(task, envelope, given)),
  }
}

/** A task that was given to the pool, and what happened to it. */
export interface Given {
  readonly task: FetchedTask
  /** The result of its attempt, once the pool has committed it. */
  readonly result: AttemptResult | undefined
  /** Whether the pool released the task, as if it had not been fetched. */
  readonly released: boolean
  readonly settled: Promise<void>
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A consumer that records the pool's calls and runs the tasks that the test gives it. */
export class FakeConsumer implements Consumer {
  opens = 0
  runs = 0
  size: number | undefined
  stops = 0
  closed = false
  /** What `notReady` returns. */
  lack: string | undefined
  /** Opening waits for this. */
  opening = async (): Promise<void> => {}
  /** Stopping waits for this before it waits for the tasks. */
  stopping = async (): Promise<void> => {}
  /** Committing a result waits for this. */
  writing = (): void | Promise<void> => {}
  /** Releasing a task waits for this. If it rejects, the store has not confirmed the release. */
  releasing = (): void | Promise<void> => {}
  /** Why the store refuses each commit. By default, it confirms them. */
  refusal: CommitRefusal | undefined
  readonly work: RunTask
  readonly pool: ConsumerHost
  #run = Promise.withResolvers<void>()
  readonly #given = new Set<Promise<void>>()
  readonly #held = new Set<FetchedTask>()

  constructor(work: RunTask, pool: ConsumerHost) {
    this.work = work
    this.pool = pool
  }

  async open(): Promise<void> {
    this.opens++
    await this.opening()
  }

  run(): Promise<void> {
    this.runs++
    this.#run = Promise.withResolvers()
    return this.#run.promise
  }

  /** Makes fetching fail. */
  fail(): void {
    this.#run.reject(new Error('the store is gone'))
  }

  resize(slots: number): void {
    this.size = slots
  }

  notReady(): string | undefined {
    return this.lack
  }

  async stop(): Promise<void> {
    this.stops++
    this.#run.resolve()
    await this.stopping()
    // A fetch that was in progress may return more tasks.
    while (this.#given.size > 0) await Promise.all(this.#given)
  }

  unconfirmed() {
    return [...this.#held]
  }

  close(): void {
    this.closed = true
  }

  #commit(result: AttemptResult): void | Promise<void> {
    const written = this.writing()
    const settle = (): void => this.pool.settled(result, this.refusal)
    return written instanceof Promise ? written.then(settle) : settle()
  }

  give(task: FetchedTask): Given {
    const given = { task, result: undefined, released: false, settled: Promise.resolve() } as Writable<Given>
    given.settled = this.work(
      task,
      (result) => {
        if (given.result !== undefined) throw new Error(`${task.id} ended twice`)
        given.result = result
        return this.#commit(result)
      },
      () => {
        given.released = true
        const written = this.releasing()
        if (!(written instanceof Promise)) return this.pool.released(task.id)
        return written.then(() => this.pool.released(task.id))
      },
    )
    const { settled } = given
    this.#given.add(settled)
    this.#held.add(task)
    void settled.then(() => {
      this.#given.delete(settled)
      this.#held.delete(task)
    })
    return given
  }
}

export interface PoolFixtureOptions {
  readonly handle?: Handle
  readonly concurrency?: number
  readonly maxStuckHandlers?: number
  readonly parent?: AbortSignal
  readonly clock?: PoolOptions['host']['clock']
}

/** Creates a pool with a fake consumer. */
export function poolFixture({ handle, concurrency = 2, maxStuckHandlers = 1, parent, clock }: PoolFixtureOptions = {}) {
  const scene = stage(handle === undefined ? {} : { handle })
  let consumer: FakeConsumer | undefined
  const pool = createPool({
    queue: 'test',
    concurrency,
    maxStuckHandlers,
    parent,
    graceMs: GRACE_MS,
    host: clock === undefined ? scene.host : { ...scene.host, clock },
    consumer: (work, fed) => {
      consumer = new FakeConsumer(work, fed)
      return consumer
    },
  })
  if (consumer === undefined) throw new Error('the pool did not create its consumer')
  const states = () => pool.slots().map(({ state }) => state)
  const give = (task = 'test.long', envelope: object = {}, given: Partial<FetchedTask> = {}): Given =>
    (consumer as FakeConsumer).give(scene.taken(task, envelope, given))
  return { ...scene, pool, consumer, states, give }
}

export type PoolFixture = ReturnType<typeof poolFixture>

/** Returns the states of the pool, in order. */
export function poolStates({ events }: Pick<PoolFixture, 'events'>): string[] {
  return events.flatMap((event) => (event.event === 'pool.state' ? [event.to] : []))
}
