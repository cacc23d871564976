// A pool without Redis: a feed that the test feeds, handlers that end when they are told to, and a clock that stands still.
import {
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
import type { NewTask } from '../ports/broker.ts'
import type { Consumer, ConsumerHost, FetchedTask, RunTask } from '../ports/consumer.ts'
import { createPool } from './pool.ts'
import type { PoolOptions } from './pool-types.ts'

const schemas = { input: z.object({ n: z.int().default(1) }), output: z.object({ n: z.int() }) }
const short = defineTask({ name: 'rig.short', queue: 'rig', kind: 'short', ...schemas })
/** The pool's default timeout of 100 ms and grace of 50 ms hold for it, unless the envelope says otherwise. */
const long = defineTask({ name: 'rig.long', queue: 'rig', ...schemas })
const child = defineTask({ name: 'rig.child', queue: 'rig', ...schemas })
/** Not to be started again by itself when its slot ends. */
const fragile = defineTask({ name: 'rig.fragile', queue: 'rig', onInterrupt: 'fail', ...schemas })
/** Its grace has no end. */
const patient = defineTask({ name: 'rig.patient', queue: 'rig', grace: 'none', ...schemas })
export const tasks = { short, long, child }
const catalogue = defineCatalogue(short, long, child, fragile, patient)

export const GRACE_MS = 50
export const TIMEOUT_MS = 100

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A handler at work, as the test holds it. */
export interface Call {
  readonly context: TaskContext
  /** Why its signal aborted, once it has. */
  heard(): Error | undefined
  finish(output?: { n: number }): void
  fail(error: unknown): void
  /** An error leaves it by another way than its promise. */
  escape(error: unknown): UncaughtFate
  snooze(delay: Duration): void
}

export type Handle = (context: TaskContext) => unknown

/** What runs attempts, without a pool. Every handler waits for the test, unless `handle` says otherwise. */
export function stage({ handle }: { readonly handle?: Handle } = {}) {
  const clock: FakeClock = fakeClock()
  const events: TaskEvent[] = []
  const enqueued: NewTask[] = []
  const store = { down: false }
  const progress: unknown[] = []
  const calls: Call[] = []

  const wait: Handle = (context) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    let heard: Error | undefined
    if (context.signal !== context.poolSignal) {
      context.signal.addEventListener('abort', () => (heard = context.signal.reason))
    }
    calls.push({
      context,
      heard: () => heard,
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
    'rig.short': defineHandler(short, import.meta.url, any),
    'rig.long': defineHandler(long, import.meta.url, any),
    'rig.child': defineHandler(child, import.meta.url, any),
    'rig.fragile': defineHandler(fragile, import.meta.url, any),
    'rig.patient': defineHandler(patient, import.meta.url, any),
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
      enqueued.push(task)
    },
    sha256,
    maxOutputBytes: 1_000,
    worker: 'host:1',
    resources: {},
    logFor: () => silent,
  }
  let made = 0
  /** A task of its own, as a feed would have taken it. */
  const taken = (task: string, envelope: object = {}, given: Partial<FetchedTask> = {}): FetchedTask => ({
    id: createTaskId('rig', 1, new Uint8Array([0, 0, 0, 0, 0, 0, 0, 0, made >> 8, made++ & 255])),
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

/** One slot on a stage: attempts one after the other, each until its end. */
export function soloist(options: { readonly handle?: Handle } = {}) {
  const scene = stage(options)
  const { host, taken } = scene
  const slot = new RunSlot({ ...host, queue: 'rig' })
  const { stuckHandlers } = slot
  return {
    ...scene,
    slot,
    stuckHandlers,
    /** Async, so that a handler that returned at once looks like the others. */
    run: async (task: string, envelope: object = {}, given: Partial<FetchedTask> = {}): Promise<AttemptResult> =>
      slot.run(taken(task, envelope, given)),
  }
}

/** A task that was given to the pool, and what became of it. */
export interface Given {
  readonly task: FetchedTask
  /** How its attempt ended, once the pool has said so. */
  readonly conclusion: AttemptResult | undefined
  /** It went back as if it had not been taken. */
  readonly refused: boolean
  readonly settled: Promise<void>
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A feed that holds what the pool told it, and takes the tasks that the test gives it. */
export class FakeFeed implements Consumer {
  opens = 0
  runs = 0
  size: number | undefined
  stops = 0
  closed = false
  /** What it says is missing. */
  lack: string | undefined
  /** What opening waits for. */
  opening = async (): Promise<void> => {}
  /** What stopping waits for, before the tasks. */
  stopping = async (): Promise<void> => {}
  /** What writing an end down waits for. */
  writing = (): void | Promise<void> => {}
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

  /** Fetching fails for good. */
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
    // A fetch that was under way may bring more.
    while (this.#given.size > 0) await Promise.all(this.#given)
  }

  unconfirmed() {
    return [...this.#held]
  }

  close(): void {
    this.closed = true
  }

  give(task: FetchedTask): Given {
    const given = { task, conclusion: undefined, refused: false, settled: Promise.resolve() } as Writable<Given>
    given.settled = this.work(
      task,
      (conclusion) => {
        if (given.conclusion !== undefined) throw new Error(`${task.id} ended twice`)
        given.conclusion = conclusion
        return this.writing()
      },
      () => {
        given.refused = true
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

export interface PoolRigOptions {
  readonly handle?: Handle
  readonly concurrency?: number
  readonly maxStuckHandlers?: number
  readonly parent?: AbortSignal
  readonly clock?: PoolOptions['host']['clock']
}

/** A pool on a fake feed. */
export function poolRig({ handle, concurrency = 2, maxStuckHandlers = 1, parent, clock }: PoolRigOptions = {}) {
  const scene = stage(handle === undefined ? {} : { handle })
  let feed: FakeFeed | undefined
  const pool = createPool({
    queue: 'rig',
    concurrency,
    maxStuckHandlers,
    parent,
    graceMs: GRACE_MS,
    host: clock === undefined ? scene.host : { ...scene.host, clock },
    consumer: (work, fed) => {
      feed = new FakeFeed(work, fed)
      return feed
    },
  })
  if (feed === undefined) throw new Error('the pool has asked for no feed')
  const states = () => pool.slots().map(({ state }) => state)
  const give = (task = 'rig.long', envelope: object = {}, given: Partial<FetchedTask> = {}): Given =>
    (feed as FakeFeed).give(scene.taken(task, envelope, given))
  return { ...scene, pool, feed, states, give }
}

export type PoolRig = ReturnType<typeof poolRig>

/** The pool's own states, in their order. */
export function poolStates({ events }: Pick<PoolRig, 'events'>): string[] {
  return events.flatMap((event) => (event.event === 'pool.state' ? [event.to] : []))
}
