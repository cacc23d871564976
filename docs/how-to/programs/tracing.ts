import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { openTelemetry } from '@bullpen/telemetry/opentelemetry'
import { createWorker } from '@bullpen/worker'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { z } from 'zod'

const exporter = new InMemorySpanExporter()
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
const tracer = trace.getTracer('shop')

const ship = defineTask({
  name: 'order.ship',
  queue: 'orders',
  input: z.object({ order: z.int() }),
  retry: { maxAttempts: 3, backoff: { initialDelay: '10ms' } },
})
const catalogue = defineCatalogue(ship)
const handleShip = defineHandler(ship, import.meta.url, ({ attempt }) => {
  tracer.startSpan('look for a carrier').end()
  if (attempt === 1) throw new TaskError('no_carrier', 'no carrier is free')
})

const tracing = openTelemetry()
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const namespace = 'how-to-tracing'
const handlers = { 'order.ship': handleShip }
const config = { redisUrl, namespace, logLevel: 'silent', port: 0 } as const
const worker = createWorker({ catalogue, handlers, tracing, config })
await worker.start()
const client = createClient({ transport: redis(redisUrl, { catalogue, namespace, tracing }) })

await tracer.startActiveSpan('checkout', async (span) => {
  const task = await client.enqueue(ship, { order: 7 })
  await task.waitUntilFinished()
  span.end()
})
await client.close()
await worker.drain()

/** Prints the spans below a span, in the order of their ends. */
function print(parent: string | undefined, indent = ''): void {
  for (const span of exporter.getFinishedSpans()) {
    if (span.parentSpanContext?.spanId !== parent) continue
    const { 'bullpen.attempt': attempt, 'bullpen.verdict': verdict, 'error.type': error } = span.attributes
    const details = attempt === undefined ? [] : [`attempt ${attempt}`, verdict, error]
    console.log(indent + [span.name, ...details].filter(Boolean).join(', '))
    print(span.spanContext().spanId, `${indent}  `)
  }
}
print(undefined)
