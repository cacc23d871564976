// The runner's cost a task, without Redis: telemetry, async context and output validation on; beside goapp and bare code.
import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defineCatalogue, defineHandler, defineTask, type Log, makeTaskId, type TaskKind } from '@bullpen/contract'
import {
  type Attempt,
  clockFrom,
  makeRegistry,
  type RunnerHost,
  readTask,
  runReading,
  type TakenTask,
  Worker,
} from '@bullpen/engine'
import { createTelemetry } from '@bullpen/telemetry'
import { z } from 'zod'
import { measurePairs } from './pairs.ts'
import { type Result, resultOf } from './report.ts'

const BATCH = 1_024
const TASKS = 200 * BATCH
const WARM_UP_TASKS = 50 * BATCH
const PAIRS = 5

/** What the seed's own pool takes on such a machine, in ns a task. */
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

type Handle = (context: { readonly input: { readonly n: number } }) => { value: string }

const HANDLERS: Readonly<Record<string, Handle>> = {
  empty: () => ({ value: '' }),
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
  const storage = new AsyncLocalStorage<Attempt>()
  return {
    registry: makeRegistry(catalogue, handlers),
    context: { run: (attempt, code) => storage.run(attempt, code, attempt), current: () => storage.getStore() },
    clock: clockFrom({
      now: Date.now,
      monotonic: () => performance.now(),
      setTimeout,
      clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
    }),
    random: Math.random,
    sink: createTelemetry({ role: 'worker', version: 'bench' }).sink,
    queue: 'bench',
    enqueue: async () => {},
    closedBy: () => undefined,
    leftovers: new Set(),
    sha256: () => new Uint8Array(32),
    outputLimitBytes: 1_000,
    process: 'bench',
    poolSignal: new AbortController().signal,
    resources: {},
    logFor: () => silent,
  }
}

function taken(kind: TaskKind): TakenTask {
  const enqueuedAt = Date.now()
  return {
    id: makeTaskId('bench', enqueuedAt, new Uint8Array(10)),
    task: definitions[kind].name,
    envelope: { v: 1, version: 1, input: { n: 50 } },
    enqueuedAt,
    start: 1,
    attempt: 1,
    maxAttempts: 5,
    readyAt: enqueuedAt,
    progress: async () => {},
  }
}

/** Nanoseconds a task. */
async function timed(tasks: number, mode: string, run: () => unknown): Promise<number> {
  const began = performance.now()
  if (mode === 'single') for (let i = 0; i < tasks; i++) await run()
  else for (let i = 0; i < tasks; i += BATCH) await Promise.all(Array.from({ length: BATCH }, run))
  return ((performance.now() - began) * 1e6) / tasks
}

/** Bytes that a task leaves for the collector, from one batch that the young generation can hold. */
async function bytes(run: () => unknown): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  collect()
  const before = process.memoryUsage().heapUsed
  await timed(BATCH, 'single', run)
  return (process.memoryUsage().heapUsed - before) / BATCH
}

/** Less is better here; a ratio above 1 still means that ours is. */
export async function* benchRunner(): AsyncGenerator<Result> {
  for (const [name, handle] of Object.entries(HANDLERS)) {
    for (const kind of ['short', 'long'] as const) {
      const world = host(handle)
      const task = taken(kind)
      const worker = new Worker(1, world.clock)
      const reading = readTask(task, world.registry)
      if (reading instanceof Error) throw reading
      const ours = () => runReading(task, reading, worker, world)
      const input = { input: { n: 50 } }
      const bare = async () => {
        try {
          return await handle(input)
        } catch (error) {
          return error
        }
      }
      for (const mode of ['batch', 'single']) {
        await timed(WARM_UP_TASKS, mode, ours)
        await timed(WARM_UP_TASKS, mode, bare)
        const pairs = await measurePairs(
          PAIRS,
          () => timed(TASKS, mode, ours),
          () => timed(TASKS, mode, bare),
          'lower',
        )
        const id = `${kind}-${mode}`
        const goapp = GOAPP[id]
        if (name === 'empty' && goapp !== undefined) {
          yield resultOf(
            'runner',
            id,
            'ns/task',
            pairs.map(({ ours }) => ({ ours, theirs: goapp, ratio: goapp / ours })),
          )
        }
        yield resultOf('runner', `${id} ${name}, beside bare code`, 'ns/task', pairs)
      }
      const own = await bytes(ours)
      const theirs = await bytes(bare)
      yield resultOf('runner', `${kind} ${name}, beside bare code`, 'bytes/task', [
        { ours: own, theirs, ratio: theirs / own },
      ])
    }
  }
}
