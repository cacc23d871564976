// Measures the runner's cost per task without Redis but with telemetry, async context and output validation, and compares it with
// the cost of bare code and of goapp, a worker pool in Go.
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defineCatalogue, defineHandler, defineTask, type Log, type TaskKind } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import {
  type AttemptResult,
  createRegistry,
  decodeTask,
  emitSettled,
  type FetchedTask,
  InterruptibleRun,
  ReusableTimer,
  type RunnerHost,
  type RunningAttempt,
  runAttempt,
  runDecoded,
} from '@bullpen/engine/internal'
import { attemptContext, sha256, systemClock } from '@bullpen/engine/node'
import { createTelemetry } from '@bullpen/telemetry/internal'
import { z } from 'zod'
import { measurePairs } from '../measuring/pairs.ts'
import { type Result, resultOf } from '../measuring/report.ts'

const BATCH = 1_024
const TASKS = 200 * BATCH
const WARM_UP_TASKS = 50 * BATCH
const PAIRS = 5

/** The cost of goapp's pool on a similar machine, in ns per task, for a handler that returns immediately. */
const GOAPP: Readonly<Record<string, number>> = {
  'short-batch': 350,
  'short-single': 740,
  'long-batch': 1_000,
  'long-single': 1_420,
}

const schemas = { input: z.object({ n: z.int() }), output: z.object({ value: z.string() }) }
const definitions = {
  short: defineTask({ name: 'bench.short', queue: 'bench', kind: 'short', ...schemas }),
  long: defineTask({ name: 'bench.long', queue: 'bench', timeout: '1m', ...schemas }),
}

type Output = { readonly value: string }
type Handle = (context: { readonly input: { readonly n: number } }) => Output | Promise<Output>

const HANDLERS: Readonly<Record<string, Handle>> = {
  empty: () => ({ value: '' }),
  'empty, asynchronous': async () => ({ value: '' }),
  'factorial(50)': ({ input }) => {
    let product = 1n
    for (let factor = 2n; factor <= BigInt(input.n); factor++) product *= factor
    return { value: String(product) }
  },
}

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

function host(handle: Handle): RunnerHost {
  const catalogue = defineCatalogue(definitions.short, definitions.long)
  const handlers = {
    'bench.short': defineHandler(definitions.short, import.meta.url, handle),
    'bench.long': defineHandler(definitions.long, import.meta.url, handle),
  }
  return {
    registry: createRegistry(catalogue, handlers),
    context: attemptContext(),
    clock: systemClock,
    random: Math.random,
    sink: createTelemetry({ role: 'worker', version: 'bench' }).sink,
    queue: 'bench',
    enqueue: async ({ id }) => ({ id, action: 'created' }),
    sha256,
    maxOutputBytes: 1_000,
    worker: 'bench',
    resources: {},
    logFor: () => silent,
  }
}

function taken(kind: TaskKind): FetchedTask {
  const enqueuedAt = Date.now()
  return {
    id: createTaskId('bench', enqueuedAt, new Uint8Array(10)),
    task: definitions[kind].name,
    envelope: { v: 2, version: 1, input: { n: 50 } },
    enqueuedAt,
    fencingToken: 1,
    attempt: 1,
    maxAttempts: 5,
    readyAt: enqueuedAt,
    progress: async () => {},
    steps: {
      read: async () => new Map(),
      keep: async (_: string, result: string) => result,
      register: async () => 'stored' as const,
    },
  }
}

/** The host that a slot passes to the attempts that it runs. */
type SlotHost = RunnerHost & Required<Pick<RunnerHost, 'slot' | 'timer'>>

/** Runs one task the way a slot does, and then settles its result the way a consumer does. */
interface Run {
  /** Returns a promise only if there is something to wait for. */
  readonly start: (slot: SlotHost) => unknown
  readonly settle: (result: unknown, slot: SlotHost) => void
}

const MODES: Readonly<Record<string, (tasks: number, run: Run, slots: readonly SlotHost[]) => Promise<void>>> = {
  async batch(tasks, { start, settle }, slots) {
    const [first] = slots
    if (first === undefined) return
    for (let i = 0; i < tasks; i += BATCH) {
      const waiting: Promise<unknown>[] = []
      for (const slot of slots) {
        const result = start(slot)
        if (result instanceof Promise) waiting.push(result)
        else settle(result, slot)
      }
      for (const result of await Promise.all(waiting)) settle(result, first)
    }
  },
  async single(tasks, { start, settle }, [slot]) {
    if (slot === undefined) return
    for (let i = 0; i < tasks; i++) {
      const result = start(slot)
      settle(result instanceof Promise ? await result : result, slot)
    }
  },
}

function resultOfRun(running: RunningAttempt): unknown {
  return running instanceof InterruptibleRun ? running.result : running
}

/** Returns the bytes per task that are left to the garbage collector, from one batch that fits into the young generation. */
async function bytes(run: Run, slots: readonly SlotHost[]): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  collect()
  const before = process.memoryUsage().heapUsed
  await MODES['single']?.(BATCH, run, slots)
  return (process.memoryUsage().heapUsed - before) / BATCH
}

/** Yields the results. Lower values are better, and a ratio above 1 means that ours is better. */
export async function* benchRunner(): AsyncGenerator<Result> {
  for (const [name, handle] of Object.entries(HANDLERS)) {
    for (const kind of ['short', 'long'] as const) {
      const world = host(handle)
      const task = taken(kind)
      const decoded = decodeTask(task, world.registry)
      if (decoded instanceof Error) throw decoded
      const timers = Array.from({ length: BATCH }, () => new ReusableTimer(world.clock))
      const slots = timers.map(
        (timer, i): SlotHost => ({ ...world, slot: i + 1, timer: (onFire) => timer.lend(onFire) }),
      )
      const settle: Run['settle'] = (result, { sink }) => emitSettled(result as AttemptResult, undefined, sink)
      const ours: Run = { start: (slot) => resultOfRun(runDecoded(task, decoded, slot)), settle }
      const withDecoding: Run = { start: (slot) => resultOfRun(runAttempt(task, slot)), settle }
      const input = { input: { n: 50 } }
      const bare: Run = {
        start: async () => {
          try {
            return await handle(input)
          } catch (error) {
            return error
          }
        },
        settle: () => {},
      }
      for (const [mode, runAll] of Object.entries(MODES)) {
        const timed = async (run: Run, tasks = TASKS): Promise<number> => {
          const began = performance.now()
          await runAll(tasks, run, slots)
          return ((performance.now() - began) * 1e6) / tasks
        }
        const beside = (one: Run, other: Run) =>
          measurePairs(
            PAIRS,
            () => timed(one),
            () => timed(other),
            'lower',
          )
        for (const run of [ours, withDecoding, bare]) await timed(run, WARM_UP_TASKS)
        const pairs = await beside(ours, bare)
        const id = `${kind}-${mode}`
        const goapp = GOAPP[id]
        if (name === 'empty' && goapp !== undefined) {
          yield resultOf(
            'runner',
            id,
            'ns/task',
            pairs.map(({ ours }) => ({ ours, theirs: goapp, ratio: goapp / ours })),
          )
          yield resultOf(
            'runner',
            `${id} ${name}, envelope and input decoded each time, beside bare code`,
            'ns/task',
            await beside(withDecoding, bare),
          )
        }
        yield resultOf('runner', `${id} ${name}, beside bare code`, 'ns/task', pairs)
      }
      const own = await bytes(ours, slots)
      const theirs = await bytes(bare, slots)
      yield resultOf('runner', `${kind} ${name}, beside bare code`, 'bytes/task', [
        { ours: own, theirs, ratio: theirs / own },
      ])
      for (const timer of timers) timer.close()
    }
  }
}
