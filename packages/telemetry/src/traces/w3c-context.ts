// Converts between W3C Trace Context, which is stored with tasks, and OpenTelemetry's context. The SDK's own propagator may read other
// headers than those of W3C.
import type { TraceContext } from '@bullpen/contract'
import { readTraceContext } from '@bullpen/contract/internal'
import { type Context, createTraceState, ROOT_CONTEXT, trace } from '@opentelemetry/api'

/** Returns a context whose active span is the remote one. */
export function contextOf(traceContext: TraceContext | undefined): Context {
  const given = traceContext && readTraceContext({ ...traceContext })
  if (given === undefined) return ROOT_CONTEXT
  const [, traceId = '', spanId = '', flags = '0'] = given.traceparent.split('-')
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(given.tracestate !== undefined && { traceState: createTraceState(given.tracestate) }),
  })
}

/** Returns undefined if no span is active. */
export function traceContextOf(active: Context): TraceContext | undefined {
  const span = trace.getSpanContext(active)
  if (span === undefined) return undefined
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0')
  const tracestate = span.traceState?.serialize()
  return readTraceContext({ traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, tracestate })
}
