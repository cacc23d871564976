// Runs the worker of the benchmark `overhead`, and sends its CPU time per task and that of Redis. The tasks are enqueued before the
// worker starts, so that only the attempts are measured.
import { randomBytes } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineHandler } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Tracing } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { openTelemetry } from '@bullpen/telemetry/opentelemetry'
import { createWorker } from '@bullpen/worker'
import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import { Redis } from 'ioredis'
import { startCpuTime } from '../measuring/cpu-time.ts'
import { untilReachable } from '../measuring/reachable.ts'
import { type Costs, catalogue, TASKS, type WorkerMessage, type WorkerOptions } from './workload.ts'

const IN_FLIGHT = 64
const SLOTS = 50

const { redisUrl, namespace, kind, tasks, isTraced } = JSON.parse(process.argv[2] ?? '') as WorkerOptions
const definition = TASKS[kind]

let left = 0
let done = Promise.withResolvers<void>()
function countEnd(n: number): { n: number } {
  left--
  if (left === 0) done.resolve()
  return { n }
}
const handlers = {
  'bench.short': defineHandler(TASKS.short, import.meta.url, ({ input: { n } }) => countEnd(n)),
  'bench.long': defineHandler(TASKS.long, import.meta.url, async ({ input: { n } }) => countEnd(n)),
}

/** The exporter drops the spans, so that they are recorded and batched, but not sent. */
function tracingWithoutNetwork(): Tracing {
  const exporter: SpanExporter = { export: (_spans, exported) => exported({ code: 0 }), shutdown: async () => {} }
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] })
  return openTelemetry({ tracer: provider.getTracer('bench') })
}

const silent = { debug() {}, info() {}, warn() {}, error: console.error }
const broker = openBroker({
  redisUrl,
  namespace,
  queues: catalogue.queues,
  sizeLimit: 65_536,
  leads: false,
  log: silent,
})
const redis = new Redis(redisUrl)
const tracing = isTraced ? tracingWithoutNetwork() : undefined
const send = (message: WorkerMessage): void => void process.send?.(message)

async function enqueueAll(): Promise<void> {
  let n = 0
  const lane = async (): Promise<void> => {
    while (n < tasks) {
      const enqueuedAt = Date.now()
      const id = createTaskId(definition.queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES))
      await broker.enqueue(newTask(definition, { n: n++ }, {}, { id, enqueuedAt, correlationId: undefined }))
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

async function measure(): Promise<Costs> {
  await enqueueAll()
  left = tasks
  done = Promise.withResolvers()
  const config = { redisUrl, namespace, logLevel: 'info', pools: { [definition.queue]: SLOTS }, port: 0 } as const
  const worker = createWorker({ catalogue, handlers, config, ...(tracing && { tracing }) })
  const { url } = await worker.start()
  send({ url })
  const measured = await startCpuTime(redis)
  await done.promise
  const costs = await measured()
  await worker.drain()
  return { process: costs.process / tasks, redis: costs.redis / tasks }
}

process.once('disconnect', () => process.exit(3))
await untilReachable(broker)
await measure() // Warms up, in the same process and with the same number of tasks.
send({ costs: await measure() })
process.exit(0)
