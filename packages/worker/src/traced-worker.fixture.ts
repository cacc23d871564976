// A worker program that prints the spans that it records, one JSON object per line.
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { openTelemetry, withTraceContext } from '@bullpen/telemetry/opentelemetry'
import { context, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { SimpleSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import { z } from 'zod'
import { createWorker, runUntilSignalled, workerConfig } from './index.ts'

const order = z.object({ order: z.int() })
const common = { queue: 'traced', input: order } as const
export const invoice = defineTask({ name: 'order.invoice', ...common, retry: { maxAttempts: 1 } })
export const ship = defineTask({
  name: 'order.ship',
  ...common,
  retry: { maxAttempts: 2, backoff: { type: 'fixed', initialDelay: '1ms' } },
  onSuccess: (followUp) => [followUp(invoice, ({ input }) => input)],
})
export const label = defineTask({ name: 'order.label', ...common, isolation: 'thread' })
export const tracedCatalogue = defineCatalogue(ship, label, invoice)

export interface PrintedSpan {
  readonly name: string
  readonly kind: string
  readonly traceId: string
  readonly spanId: string
  readonly parent: string | undefined
  readonly failed: boolean
  readonly attributes: Readonly<Record<string, unknown>>
}

const tracer = trace.getTracer('test')

export const handleShip = defineHandler(ship, import.meta.url, async ({ input, attempt, enqueue }) => {
  if (attempt === 1) throw new TaskError('no_carrier', 'no carrier is free')
  tracer.startSpan('book the carrier').end()
  await enqueue(label, input)
})

export const handleLabel = defineHandler(label, import.meta.url, ({ traceContext }) => {
  // The thread has no spans of its own to print, so its handler says what it knows of the trace.
  console.log(`thread ${withTraceContext(traceContext, () => traceContext?.traceparent)}`)
})

export const handleInvoice = defineHandler(invoice, import.meta.url, () => {
  throw new RangeError('the amount is negative')
})

const printer: SpanExporter = {
  export(spans, done) {
    for (const span of spans) {
      const { traceId, spanId } = span.spanContext()
      const printed: PrintedSpan = {
        ...{ name: span.name, kind: SpanKind[span.kind], traceId, spanId, attributes: span.attributes },
        parent: span.parentSpanContext?.spanId,
        failed: span.status.code === 2,
      }
      console.log(JSON.stringify(printed))
    }
    done({ code: 0 })
  },
  shutdown: async () => {},
}

if (process.argv[1] === import.meta.filename) {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: printer })] }),
  )
  const handlers = { 'order.ship': handleShip, 'order.label': handleLabel, 'order.invoice': handleInvoice }
  const config = { ...workerConfig(), port: 0, logLevel: 'silent' } as const
  const tracing = openTelemetry()
  process.exit(await runUntilSignalled(() => createWorker({ catalogue: tracedCatalogue, handlers, tracing, config })))
}
