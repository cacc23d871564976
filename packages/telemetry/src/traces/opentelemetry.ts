// Records spans with OpenTelemetry. Only the modules of this directory require `@opentelemetry/api`.
//
// The span of an attempt starts when its handler starts, and ends with the event that says what the store has committed. The span therefore
// shows whether the task is completed, is retried, or was taken by another worker, which is not known yet when the handler returns.
import { type TraceContext, VERSION } from '@bullpen/contract'
import type { AttemptSpan, EnqueueSpan, TracedEnqueue, Tracing } from '@bullpen/engine'
import {
  type Context,
  context,
  createContextKey,
  type Link,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { attemptAttributes, describeAttemptEnd } from './attempt-spans.ts'
import { describeEnqueueEnd, enqueueAttributes } from './enqueue-spans.ts'
import { failSpan } from './messaging.ts'
import { contextOf, traceContextOf } from './w3c-context.ts'

export interface OpenTelemetryOptions {
  /** Defaults to the tracer `bullpen` of the registered provider. */
  readonly tracer?: Tracer
}

/** The `traceparent` of the attempt whose handler runs in a context. */
const ATTEMPT = createContextKey('bullpen attempt')

/**
 * Records a span for each attempt and for each call that enqueues tasks. Names and attributes follow the semantic conventions for
 * messaging.
 *
 * - `process QUEUE`, of kind CONSUMER, is an attempt. Its parent is the span of the call that has enqueued the task. The span is active
 *   while the handler runs in this process. If the worker dies, the attempt has no span.
 * - `enqueue QUEUE`, of kind PRODUCER, is a call that enqueues one or more tasks. Its parent is the active span, that of the request, or
 *   that of the attempt whose handler enqueues.
 *
 * Register an SDK before the worker, the API or the client starts; without one, OpenTelemetry's API records nothing.
 */
export function openTelemetry({ tracer = trace.getTracer('bullpen', VERSION) }: OpenTelemetryOptions = {}): Tracing {
  /** The spans of the attempts that have not ended, by task id and fencing token. */
  const spans = new Map<string, { readonly queue: string; readonly span: Span }>()

  /** Ends the spans of attempts that a drain has abandoned or whose end the store has not confirmed. No event about them follows. */
  function endUnconfirmed(drained: string): void {
    for (const [key, { queue, span }] of spans) {
      if (queue !== drained) continue
      spans.delete(key)
      failSpan(span, 'unconfirmed', 'the pool was drained before the end of the attempt was stored')
      span.end()
    }
  }

  return {
    startAttempt(attempt): AttemptSpan {
      const parent = contextOf(attempt.traceContext)
      const options = { kind: SpanKind.CONSUMER, attributes: attemptAttributes(attempt) }
      const span = tracer.startSpan(`process ${attempt.queue}`, options, parent)
      if (span.isRecording()) spans.set(keyOf(attempt), { queue: attempt.queue, span })
      const own = trace.setSpan(parent, span)
      const traceContext = traceContextOf(own) ?? attempt.traceContext
      const active = own.setValue(ATTEMPT, traceContext?.traceparent)
      return { traceContext, run: (call) => context.with(active, call) }
    },

    startEnqueue(enqueue): EnqueueSpan {
      const parent = callingContext(enqueue.traceContext)
      const options = { kind: SpanKind.PRODUCER, attributes: enqueueAttributes(enqueue), links: linksOf(enqueue) }
      const name = enqueue.queue === undefined ? 'enqueue' : `enqueue ${enqueue.queue}`
      const span = tracer.startSpan(name, options, parent)
      const active = trace.setSpan(parent, span)
      return {
        traceContext: traceContextOf(active) ?? enqueue.traceContext,
        run: (call) => context.with(active, call),
        end(end) {
          if (span.isRecording()) describeEnqueueEnd(span, end)
          span.end()
        },
      }
    },

    sink(event) {
      if (event.event === 'pool.state' && event.to === 'TERMINATE_TIMEOUT') endUnconfirmed(event.queue)
      if (event.event !== 'attempt.ended' && event.event !== 'attempt.commit_refused') return
      const key = keyOf(event)
      const span = spans.get(key)?.span
      if (span === undefined) return
      spans.delete(key)
      describeAttemptEnd(span, event)
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

/**
 * Returns the active context if it is one of the handler that enqueues, so that a span that the handler has started is the parent. The
 * call of an isolated handler arrives as a message, in a context that may be that of another attempt.
 */
function callingContext(traceContext: TraceContext | undefined): Context {
  const active = context.active()
  const isOwn = traceContext !== undefined && active.getValue(ATTEMPT) === traceContext.traceparent
  return isOwn ? active : contextOf(traceContext)
}

/** The copy of a dead task belongs to the trace of that task, so the request that retries the task can only be linked. */
function linksOf({ retryOf }: TracedEnqueue): Link[] {
  const request = retryOf && trace.getSpanContext(context.active())
  return request === undefined ? [] : [{ context: request, attributes: { 'bullpen.link': 'retry_request' } }]
}
