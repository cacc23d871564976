// Compares the throughput of a Bullpen pool with that of a raw BullMQ Worker, with the same jobs, options and Redis, and with
// no-op tasks.
import { randomBytes, randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, defineTask, type Log } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { createWorker } from '@bullpen/worker'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { measurePairs, type Side } from '../measuring/pairs.ts'
import { type Result, resultOf } from '../measuring/report.ts'

const CONCURRENCY = 50
const PAIRS = 11
const SECONDS_A_SIDE = 2
const WARM_UP_TASKS = 20_000
const IN_FLIGHT = 64
const KEEP = { age: 86_400 }
const LOCKS = { lockDuration: 5_000, lockRenewTime: 1_000, stalledInterval: 1_500, maxStalledCount: 10 }

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

const noop = defineTask({
  name: 'bench.noop',
  queue: 'bench',
  kind: 'short',
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
})
/** Like any long task, it has a timeout and is awaited. */
const noopLong = defineTask({
  name: 'bench.noop-long',
  queue: 'bench',
  timeout: '1m',
  events: false,
  input: noop.input,
  output: noop.output,
})
/** Long tasks have events unless their definition turns them off. */
const noopEvents = defineTask({
  name: 'bench.noop-events',
  queue: 'bench',
  timeout: '1m',
  input: noop.input,
  output: noop.output,
})
const catalogue = defineCatalogue(noop, noopLong, noopEvents)

/** The definitions that are measured, by what the report calls them. */
const KINDS = { short: noop, long: noopLong, 'long, with events': noopEvents } as const

type Kind = (typeof KINDS)[keyof typeof KINDS]

/** Resolves at the last of `tasks` calls. The measurement starts at the first call. */
function stopwatch(tasks: number) {
  const { promise, resolve } = Promise.withResolvers<number>()
  let seen = 0
  let from = 0
  return {
    rate: promise,
    tick(): void {
      seen++
      if (seen === 1) from = performance.now()
      if (seen === tasks) resolve((tasks / (performance.now() - from)) * 1_000)
    },
  }
}

/** The worker finds this handler in the module, as it finds every handler. The watch is set before each run. */
let watch = stopwatch(0)
export const noopHandler = defineHandler(noop, import.meta.url, ({ input }) => {
  watch.tick()
  return { n: input.n }
})

export const noopLongHandler = defineHandler(noopLong, import.meta.url, async ({ input }) => {
  watch.tick()
  return { n: input.n }
})

export const noopEventsHandler = defineHandler(noopEvents, import.meta.url, async ({ input }) => {
  watch.tick()
  return { n: input.n }
})

/** Enqueues the tasks as the API does, lets `work` run them, and cleans up. Both sides get exactly the same jobs. */
async function withTasks(
  redisUrl: string,
  kind: Kind,
  tasks: number,
  work: (namespace: string) => Promise<number>,
): Promise<number> {
  const namespace = `bench-${randomUUID().slice(0, 8)}`
  const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, log: silent })
  await reachable(broker.ping)
  await inParallel(tasks, (n) => broker.enqueue(taskOf(kind, n)))
  const rate = await work(namespace)
  await Promise.all(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
  await broker.close()
  return rate
}

function taskOf(kind: Kind, n: number): NewTask {
  const enqueuedAt = Date.now()
  const id = createTaskId(kind.queue, enqueuedAt, randomBytes(10))
  return newTask(kind, { n }, {}, { id, enqueuedAt, correlationId: undefined })
}

const bullpen = (redisUrl: string, kind: Kind, tasks: number) =>
  withTasks(redisUrl, kind, tasks, async (namespace) => {
    watch = stopwatch(tasks)
    const worker = createWorker({
      catalogue,
      handlers: {
        'bench.noop': noopHandler,
        'bench.noop-long': noopLongHandler,
        'bench.noop-events': noopEventsHandler,
      },
      config: { redisUrl, namespace, logLevel: 'warn', pools: { bench: CONCURRENCY }, port: 0 },
    })
    await worker.start()
    const rate = await watch.rate
    await worker.drain()
    return rate
  })

/**
 * Measures a raw worker. For long tasks, the processor has three parameters, because a raw worker passes a signal only to such
 * a processor.
 */
const raw = (redisUrl: string, kind: Kind, tasks: number) =>
  withTasks(redisUrl, kind, tasks, async (namespace) => {
    const own = stopwatch(tasks)
    type Job = { readonly data: { readonly input: { readonly n: number } } }
    const short = async (job: Job) => {
      own.tick()
      return { n: job.data.input.n }
    }
    const long = async (job: Job, _token?: string, _signal?: AbortSignal) => short(job)
    const processor = kind.kind === 'short' ? short : long
    const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
    const prefix = `{${namespace}.${noop.queue}}`
    const options = { connection, prefix, concurrency: CONCURRENCY, removeOnComplete: KEEP, ...LOCKS }
    const worker = new Worker(noop.queue, processor, options)
    const rate = await own.rate
    await worker.close()
    connection.disconnect()
    return rate
  })

async function inParallel(count: number, add: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await add(next++)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

/** Waits until the broker accepts commands, because a producer's connection rejects them until it is open. */
async function reachable(ping: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await ping()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

/** Measures the noise floor first: a comparison of raw with raw shows how much two equal sides differ on this machine. */
export async function* benchWorker(redisUrl: string): AsyncGenerator<Result> {
  for (const [name, kind] of Object.entries(KINDS)) {
    await bullpen(redisUrl, kind, WARM_UP_TASKS)
    const tasks = Math.ceil((await raw(redisUrl, kind, WARM_UP_TASKS)) * SECONDS_A_SIDE)
    const ours: Side = () => bullpen(redisUrl, kind, tasks)
    const theirs: Side = () => raw(redisUrl, kind, tasks)
    if (kind === noop) {
      yield resultOf('worker', 'noise (raw against raw)', 'tasks/s', await measurePairs(PAIRS, theirs, theirs))
    }
    yield resultOf('worker', name, 'tasks/s', await measurePairs(PAIRS, ours, theirs))
  }
}
