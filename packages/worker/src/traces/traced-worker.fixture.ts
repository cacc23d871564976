// A worker program that prints the spans that it records.
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { openTelemetry, withTraceContext } from '@bullpen/telemetry/opentelemetry'
import { trace } from '@opentelemetry/api'
import { z } from 'zod'
import { createWorker, runUntilSignalled, workerConfig } from '../index.ts'
import { printSpans } from './span-printer.fixture.ts'

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
export const pack = defineTask({ name: 'order.pack', ...common })
export const tracedCatalogue = defineCatalogue(ship, label, pack, invoice)

const tracer = trace.getTracer('test')

export const handleShip = defineHandler(ship, import.meta.url, async ({ input, attempt, enqueue }) => {
  if (attempt === 1) throw new TaskError('no_carrier', 'no carrier is free')
  await tracer.startActiveSpan('book the carrier', async (span) => {
    await enqueue(label, input)
    span.end()
  })
})

export const handleLabel = defineHandler(label, import.meta.url, async ({ input, traceContext, enqueue }) => {
  // The thread has no spans of its own to print, so its handler says what it knows of the trace.
  console.log(`thread ${withTraceContext(traceContext, () => traceContext?.traceparent)}`)
  await enqueue(pack, input)
})

export const handlePack = defineHandler(pack, import.meta.url, () => {})

export const handleInvoice = defineHandler(invoice, import.meta.url, () => {
  throw new RangeError('the amount is negative')
})

if (process.argv[1] === import.meta.filename) {
  printSpans()
  const handlers = {
    'order.ship': handleShip,
    'order.label': handleLabel,
    'order.pack': handlePack,
    'order.invoice': handleInvoice,
  }
  const config = { ...workerConfig(), port: 0, logLevel: 'silent' } as const
  const tracing = openTelemetry()
  process.exit(await runUntilSignalled(() => createWorker({ catalogue: tracedCatalogue, handlers, tracing, config })))
}
