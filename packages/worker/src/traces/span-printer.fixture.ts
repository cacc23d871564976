// Prints the spans that a program records, one JSON object per line.
import { context, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { SimpleSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'

export interface PrintedSpan {
  readonly name: string
  readonly kind: string
  readonly traceId: string
  readonly spanId: string
  readonly parent: string | undefined
  readonly tracestate: string | undefined
  readonly failed: boolean
  readonly attributes: Readonly<Record<string, unknown>>
}

const printer: SpanExporter = {
  export(spans, done) {
    for (const span of spans) {
      const { traceId, spanId, traceState } = span.spanContext()
      const printed: PrintedSpan = {
        ...{ name: span.name, kind: SpanKind[span.kind], traceId, spanId, attributes: span.attributes },
        parent: span.parentSpanContext?.spanId,
        tracestate: traceState?.serialize(),
        failed: span.status.code === 2,
      }
      console.log(JSON.stringify(printed))
    }
    done({ code: 0 })
  },
  shutdown: async () => {},
}

/** Registers an SDK that prints the spans of this process. */
export function printSpans(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: printer })] }),
  )
}

/** Returns the spans that a program has printed, among other lines. The last line may be incomplete. */
export function printedSpans(output: string): readonly PrintedSpan[] {
  const lines = output.split('\n').slice(0, -1)
  return lines.flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as PrintedSpan] : []))
}
