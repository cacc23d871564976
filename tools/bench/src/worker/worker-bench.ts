// Compares a Bullpen pool with a raw BullMQ Worker that has as many slots: the rate, and the CPU time of the process and of Redis. Both
// run the same tasks, on the same Redis.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, defineTask, type Log } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { createWorker } from '@bullpen/worker'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { type Comparison, compareRounds, describeRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { type CpuTime, startCpuTime } from '../measuring/cpu-time.ts'
import { untilReachable } from '../measuring/reachable.ts'
import { openSideParts } from '../measuring/side-parts.ts'

const WARM_UP_TASKS = 5_000
const IN_FLIGHT = 64
const KEEP = { age: 86_400 }
const LOCKS = { lockDuration: 5_000, lockRenewTime: 1_000, stalledInterval: 1_500, maxStalledCount: 10 }

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

const common = { queue: 'bench', input: z.object({ n: z.int() }), output: z.object({ n: z.int() }) } as const
/** What is measured. Long tasks have a timeout and are awaited, and have events unless their definition turns them off. */
const DEFINITIONS = {
  short: defineTask({ ...common, name: 'bench.short', kind: 'short' }),
  long: defineTask({ ...common, name: 'bench.long', timeout: '1m', events: false }),
  events: defineTask({ ...common, name: 'bench.events', timeout: '1m' }),
  '10ms': defineTask({ ...common, name: 'bench.10ms', timeout: '1m', events: false }),
} as const

export type WorkerCase = keyof typeof DEFINITIONS
export const WORKER_CASES = Object.keys(DEFINITIONS) as readonly WorkerCase[]
const { short, long, events, '10ms': sleeping } = DEFINITIONS
const catalogue = defineCatalogue(short, long, events, sleeping)

export interface WorkerBenchOptions {
  readonly redisUrl: string
  readonly cases: readonly WorkerCase[]
  readonly slots: number
  readonly pairs: number
  /** About how long each measurement takes. */
  readonly seconds: number
}

const UNITS = { rate: 'tasks/s', processCpu: 'µs/task', redisCpu: 'µs/task' } as const
export type WorkerFigure = keyof typeof UNITS
export const WORKER_FIGURES = Object.keys(UNITS) as readonly WorkerFigure[]
type Figures = Readonly<Record<WorkerFigure, number>>

export interface WorkerComparison extends Comparison {
  readonly bench: 'worker'
  readonly case: WorkerCase
  readonly slots: number
  readonly figure: WorkerFigure
  readonly unit: string
}

/** Counts the tasks that run. The first tenth, during which the worker starts, is not measured. */
function watchTasks(redis: Redis, tasks: number) {
  const { promise, resolve, reject } = Promise.withResolvers<Figures>()
  const first = Math.ceil(tasks / 10)
  let seen = 0
  let from = 0
  let measuring: Promise<() => Promise<CpuTime>> | undefined
  const finish = async (seconds: number): Promise<Figures> => {
    const cpu = await (await measuring)?.()
    const counted = tasks - first
    return {
      rate: counted / seconds,
      processCpu: (cpu?.process ?? Number.NaN) / counted,
      redisCpu: (cpu?.redis ?? Number.NaN) / counted,
    }
  }
  return {
    figures: promise,
    tick(): void {
      seen++
      if (seen === first) {
        from = performance.now()
        measuring = startCpuTime(redis)
      } else if (seen === tasks) finish((performance.now() - from) / 1_000).then(resolve, reject)
    },
  }
}

/** The handlers of both sides tell the watch of the side that is measured. */
let tick = (): void => {}

const SLEEP_MS = 10

const atOnce = (n: number): { n: number } => {
  tick()
  return { n }
}
const later = async (n: number): Promise<{ n: number }> => {
  await sleep(SLEEP_MS)
  return atOnce(n)
}

/** The worker finds these handlers in the module, as it finds every handler. */
export const shortHandler = defineHandler(short, import.meta.url, ({ input }) => atOnce(input.n))
export const longHandler = defineHandler(long, import.meta.url, async ({ input }) => atOnce(input.n))
export const eventsHandler = defineHandler(events, import.meta.url, async ({ input }) => atOnce(input.n))
export const sleepHandler = defineHandler(sleeping, import.meta.url, ({ input }) => later(input.n))

interface Side {
  readonly redisUrl: string
  readonly namespace: string
  readonly slots: number
  readonly name: WorkerCase
}

/** Starts a worker and returns what stops it. */
type StartWorker = (side: Side) => Promise<() => Promise<unknown>>

const startBullpen: StartWorker = async ({ redisUrl, namespace, slots }) => {
  const worker = createWorker({
    catalogue,
    handlers: {
      'bench.short': shortHandler,
      'bench.long': longHandler,
      'bench.events': eventsHandler,
      'bench.10ms': sleepHandler,
    },
    config: { redisUrl, namespace, logLevel: 'warn', pools: { bench: slots }, port: 0 },
  })
  await worker.start()
  return () => worker.drain()
}

/** For long tasks, the processor has three parameters, because a raw worker passes a signal only to such a processor. */
const startRaw: StartWorker = async ({ redisUrl, namespace, slots, name }) => {
  type Job = { readonly data: { readonly input: { readonly n: number } } }
  const run = name === '10ms' ? later : atOnce
  const process = async ({ data }: Job) => run(data.input.n)
  const processLong = async (job: Job, _token?: string, _signal?: AbortSignal) => process(job)
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const options = { connection, prefix: `{${namespace}.bench}`, concurrency: slots, removeOnComplete: KEEP, ...LOCKS }
  const worker = new Worker('bench', name === 'short' ? process : processLong, options)
  return async () => {
    await worker.close()
    connection.disconnect()
  }
}

/** Enqueues the tasks as the API does, and lets a worker run them. Both sides get exactly the same jobs. */
async function measure(
  start: StartWorker,
  tasks: number,
  name: WorkerCase,
  options: WorkerBenchOptions,
): Promise<Figures> {
  const { redisUrl, slots } = options
  await using parts = openSideParts(redisUrl)
  const { redis, namespace } = parts
  await enqueueAll(redisUrl, namespace, name, tasks)
  const watch = watchTasks(redis, tasks)
  tick = watch.tick
  const stop = await start({ redisUrl, namespace, slots, name })
  const figures = await watch.figures
  await stop()
  return figures
}

async function enqueueAll(redisUrl: string, namespace: string, name: WorkerCase, tasks: number): Promise<void> {
  const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, log: silent })
  await untilReachable(broker)
  let n = 0
  const enqueueNext = async (): Promise<void> => {
    while (n < tasks) {
      const enqueuedAt = Date.now()
      const id = createTaskId('bench', enqueuedAt, randomBytes(10))
      await broker.enqueue(newTask(DEFINITIONS[name], { n: n++ }, {}, { id, enqueuedAt, correlationId: undefined }))
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, enqueueNext))
  await broker.close()
}

/** Yields the comparisons of each case when the case has been measured. */
export async function* benchWorker(options: WorkerBenchOptions): AsyncGenerator<WorkerComparison> {
  const { cases, slots, pairs, seconds } = options
  for (const name of cases) {
    await measure(startBullpen, WARM_UP_TASKS, name, options)
    const { rate } = await measure(startRaw, WARM_UP_TASKS, name, options)
    // The first task begins the measurement, and the last one ends it.
    const tasks = Math.max(2, Math.ceil(rate * seconds))
    const measureSide = (start: StartWorker) => () => measure(start, tasks, name, options)
    const rounds = await measureRounds(pairs, measureSide(startBullpen), measureSide(startRaw))
    for (const figure of WORKER_FIGURES) {
      const compared = compareRounds(rounds, (figures) => figures[figure])
      yield { bench: 'worker', case: name, slots, figure, unit: UNITS[figure], ...compared }
    }
  }
}

export function describeWorker({ case: name, slots, figure, unit, ...compared }: WorkerComparison): string {
  const { theirs, ours } = compared
  const digits = theirs < 1_000 ? 1 : 0
  const values = `${theirs.toFixed(digits).padStart(8)} → ${ours.toFixed(digits).padStart(8)} ${unit.padEnd(8)}`
  return `${`${name}, ${slots} slots: ${figure}`.padEnd(30)}${values}   ${describeRatios(compared)}`
}
