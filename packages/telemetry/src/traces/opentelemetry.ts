// Records spans with OpenTelemetry. This is the only module of Bullpen that requires `@opentelemetry/api`.
//
// A span starts when a handler starts, and ends with the event that says what the store has committed. The span therefore shows whether
// the task is completed, is retried, or was taken by another worker, which is not known yet when the handler returns.
import { type TaskEvent, type TraceContext, VERSION } from '@bullpen/contract'
import { readTraceContext } from '@bullpen/contract/internal'
import type { AttemptSpan, TracedAttempt, Tracing } from '@bullpen/engine'
import {
  type Context,
  context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'

export interface OpenTelemetryOptions {
  /** Defaults to the tracer `bullpen` of the registered provider. */
  readonly tracer?: Tracer
}

type AttemptEnd = TaskEvent & { readonly event: 'attempt.ended' | 'attempt.commit_refused' }

/**
 * Records a span for each attempt: of kind CONSUMER, with the name `process QUEUE`, and with attributes that follow the semantic
 * conventions for messaging. Its parent is the span of the request that enqueued the task, or that of the parent task's attempt. The span
 * is active while the handler runs in this process. If the worker dies, or a drain abandons the attempt, the attempt has no span.
 *
 * Register an SDK before the worker starts; without one, OpenTelemetry's API records nothing.
 */
export function openTelemetry({ tracer = trace.getTracer('bullpen', VERSION) }: OpenTelemetryOptions = {}): Tracing {
  /** The spans of the attempts that have not ended, by task id and fencing token. */
  const spans = new Map<string, Span>()
  return {
    startAttempt(attempt): AttemptSpan {
      const parent = contextOf(attempt.traceContext)
      const span = tracer.startSpan(
        `process ${attempt.queue}`,
        { kind: SpanKind.CONSUMER, attributes: attributesOf(attempt) },
        parent,
      )
      const active = trace.setSpan(parent, span)
      if (span.isRecording()) spans.set(keyOf(attempt), span)
      return {
        traceContext: traceContextOf(active) ?? attempt.traceContext,
        run: (call) => context.with(active, call),
      }
    },

    sink(event) {
      if (event.event !== 'attempt.ended' && event.event !== 'attempt.commit_refused') return
      const key = keyOf(event)
      const span = spans.get(key)
      if (span === undefined) return
      spans.delete(key)
      describeEnd(span, event)
      span.end()
    },

    current: () => traceContextOf(context.active()),
  }
}

/**
 * Calls a function within a trace, for example in an isolated handler, whose thread or process does not know the active span:
 * `withTraceContext(ctx.traceContext, () => fetch(url))`.
 */
export function withTraceContext<T>(traceContext: TraceContext | undefined, call: () => T): T {
  return context.with(contextOf(traceContext), call)
}

const keyOf = ({ id, fencingToken }: { readonly id: string; readonly fencingToken: number }): string =>
  `${id} ${fencingToken}`

function attributesOf({ queue, task, id, attempt, fencingToken }: TracedAttempt) {
  return {
    'messaging.system': 'bullpen',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': queue,
    'messaging.message.id': id,
    'bullpen.task': task,
    'bullpen.attempt': attempt,
    'bullpen.fencing_token': fencingToken,
  }
}

/** An attempt that was stopped, requeued or snoozed has not failed. */
function describeEnd(span: Span, end: AttemptEnd): void {
  span.setAttribute('bullpen.state', end.state)
  if (end.verdict !== undefined) span.setAttribute('bullpen.verdict', end.verdict)
  if (end.reason !== undefined) span.setAttribute('bullpen.reason', end.reason)
  if (end.event === 'attempt.commit_refused') {
    span.setAttribute('bullpen.refusal', end.refusal)
    fail(span, end.refusal, 'the result was not stored')
  } else if (end.verdict === 'retrying' || end.verdict === 'dead') {
    const { error, code, reason } = end
    if (error instanceof Error) span.recordException(error)
    fail(span, code ?? reason ?? end.verdict, error instanceof Error ? error.message : undefined)
  }
}

function fail(span: Span, type: string, message: string | undefined): void {
  span.setAttribute('error.type', type)
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
}

/** Returns a context whose active span is the remote one. The SDK's own propagator may read other headers than those of W3C. */
function contextOf(traceContext: TraceContext | undefined): Context {
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
function traceContextOf(active: Context): TraceContext | undefined {
  const span = trace.getSpanContext(active)
  if (span === undefined) return undefined
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0')
  const tracestate = span.traceState?.serialize()
  return readTraceContext({ traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, tracestate })
}
