// Tests the spans of attempts that end in an unusual way, and those of calls that enqueue tasks, with a tracer that records its calls.
import { BullpenError, type TaskEvent, type TaskId } from '@bullpen/contract'
import type { TracedEnqueue } from '@bullpen/engine'
import {
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openTelemetry } from './opentelemetry.ts'

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const ATTEMPT = {
  ...{ queue: 'cpu', task: 'math.square', id: 'cpu-1' as TaskId, fencingToken: 3, attempt: 2 },
  ...{ correlationId: undefined, group: undefined, run: undefined, followUpOf: undefined },
} as const
const END = { ...ATTEMPT, kind: 'long', correlationId: undefined, durationMs: 1, error: undefined } as const

function openSpans() {
  const ends: { attributes: Record<string, unknown>; status: unknown; exceptions: unknown[] }[] = []
  const parents: unknown[] = []
  const starts: unknown[] = []
  const startSpan: Tracer['startSpan'] = (name, options, parent = ROOT_CONTEXT) => {
    starts.push({ name, kind: options?.kind, links: options?.links })
    parents.push(trace.getSpanContext(parent))
    const attributes: Record<string, unknown> = { ...options?.attributes }
    const seen = { attributes, status: undefined as unknown, exceptions: [] as unknown[] }
    const span: Partial<Span> = {
      isRecording: () => true,
      spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }),
      setAttribute: (key, value) => {
        attributes[key] = value
        return span as Span
      },
      setStatus: (status) => {
        seen.status = status
        return span as Span
      },
      recordException: (error) => seen.exceptions.push(error),
      end: () => ends.push(seen),
    }
    return span as Span
  }
  return { tracing: openTelemetry({ tracer: { startSpan } as Tracer }), ends, parents, starts }
}

describe('the span of an attempt', () => {
  it('is failed if the result was not stored', () => {
    const { tracing, ends } = openSpans()
    tracing.startAttempt({ ...ATTEMPT, traceContext: { traceparent: TRACEPARENT } })
    const refused = { state: 'DONE_SUCCESS', reason: undefined, code: undefined, refusal: 'lock_lost' } as const
    tracing.sink({ ...END, ...refused, event: 'attempt.commit_refused', verdict: 'completed' })
    expect(ends).toMatchObject([{ attributes: { 'bullpen.refusal': 'lock_lost', 'error.type': 'lock_lost' } }])
    expect(ends[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'the result was not stored' })
  })

  it('is not failed if the task was requeued', () => {
    const { tracing, ends } = openSpans()
    tracing.startAttempt({ ...ATTEMPT, traceContext: undefined })
    const requeued = { state: 'TERMINATED_CTX_CLOSED', reason: undefined, code: undefined, delayMs: undefined } as const
    tracing.sink({ ...END, ...requeued, event: 'attempt.ended', verdict: 'requeued' })
    expect(ends).toMatchObject([{ attributes: { 'bullpen.verdict': 'requeued' }, status: undefined }])
  })

  it('ends once, and only with an event of the same attempt', () => {
    const { tracing, ends } = openSpans()
    tracing.startAttempt({ ...ATTEMPT, traceContext: undefined })
    const error = new Error('busy')
    const ended = {
      ...END,
      state: 'DONE_ERROR',
      reason: undefined,
      code: 'busy',
      error,
      event: 'attempt.ended',
    } as const
    const dead = { ...ended, verdict: 'dead', delayMs: undefined } as TaskEvent
    tracing.sink({ ...dead, fencingToken: 2 } as TaskEvent)
    expect(ends).toEqual([])
    tracing.sink(dead)
    tracing.sink(dead)
    expect(ends).toMatchObject([{ exceptions: [error], attributes: { 'error.type': 'busy' } }])
  })

  it('is failed if the drain of its pool has timed out, because no event about the attempt follows', () => {
    const { tracing, ends } = openSpans()
    tracing.startAttempt({ ...ATTEMPT, traceContext: undefined })
    tracing.startAttempt({ ...ATTEMPT, queue: 'mail', id: 'mail-1' as TaskId, traceContext: undefined })
    const pool = { event: 'pool.state', queue: 'cpu' } as const
    tracing.sink({ ...pool, from: 'BG_RUNNING', to: 'SHUTTING_DOWN' })
    expect(ends).toEqual([])
    tracing.sink({ ...pool, from: 'SHUTTING_DOWN', to: 'TERMINATE_TIMEOUT' })
    const ended = { 'messaging.message.id': 'cpu-1', 'error.type': 'unconfirmed' }
    expect(ends).toMatchObject([{ attributes: ended, status: { code: SpanStatusCode.ERROR } }])
    const late = { state: 'DONE_SUCCESS', reason: undefined, code: undefined, delayMs: undefined } as const
    tracing.sink({ ...END, ...late, event: 'attempt.ended', verdict: 'completed' })
    expect(ends.length).toBe(1)
  })

  it('has no parent if the stored trace context is invalid', () => {
    const { tracing, parents } = openSpans()
    const { traceContext } = tracing.startAttempt({ ...ATTEMPT, traceContext: { traceparent: 'x' } })
    expect(parents).toEqual([undefined])
    expect(traceContext).toEqual({ traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` })
  })
})

const ENQUEUE: TracedEnqueue = {
  ...{ queue: 'cpu', task: 'math.square', id: 'cpu-1' as TaskId, count: undefined, correlationId: undefined },
  ...{ group: undefined, run: undefined, retryOf: undefined, traceContext: { traceparent: TRACEPARENT } },
}

describe('the span of a call that enqueues tasks', () => {
  it('is failed if the task was not stored', () => {
    const { tracing, ends, starts, parents } = openSpans()
    tracing.startEnqueue(ENQUEUE).end({ error: new BullpenError('queue_full', 'full') })
    expect(starts).toEqual([{ name: 'enqueue cpu', kind: SpanKind.PRODUCER, links: [] }])
    expect(parents).toMatchObject([{ spanId: '00f067aa0ba902b7', isRemote: true }])
    expect(ends).toMatchObject([{ attributes: { 'error.type': 'queue_full' } }])
    expect(ends[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'full' })
  })

  it('has the id of the task that an earlier call has stored', () => {
    const { tracing, ends } = openSpans()
    tracing.startEnqueue(ENQUEUE).end({ id: 'cpu-0' as TaskId, action: 'existing' })
    const attributes = { 'messaging.message.id': 'cpu-0', 'bullpen.action': 'existing' }
    expect(ends).toMatchObject([{ attributes, status: undefined }])
  })

  it('has no queue and no id if a bulk call stores tasks of several queues, and counts those that were not stored', () => {
    const { tracing, ends, starts } = openSpans()
    const bulk = { ...ENQUEUE, queue: undefined, task: undefined, id: undefined, count: 3 }
    tracing.startEnqueue(bulk).end({ error: new TypeError('no'), failed: 2 })
    expect(starts).toMatchObject([{ name: 'enqueue' }])
    expect(ends[0]?.attributes).toEqual({
      'messaging.system': 'bullpen',
      'messaging.operation.name': 'enqueue',
      'messaging.operation.type': 'send',
      'messaging.batch.message_count': 3,
      'bullpen.failed_count': 2,
      'error.type': 'TypeError',
    })
  })

  it('is in the trace of the dead task that is retried in another queue, and links to the request', () => {
    manageContexts()
    const { tracing, parents, starts } = openSpans()
    const request = { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), traceFlags: 1 }
    context.with(trace.setSpanContext(ROOT_CONTEXT, request), () => {
      tracing.startEnqueue({ ...ENQUEUE, retryOf: 'gpu-1' as TaskId })
    })
    expect(parents).toMatchObject([{ spanId: '00f067aa0ba902b7' }])
    expect(starts).toMatchObject([{ links: [{ context: request }] }])
  })

  it('has the active span as its parent only within the attempt whose handler enqueues', () => {
    manageContexts()
    const { tracing, parents } = openSpans()
    const attempt = tracing.startAttempt({ ...ATTEMPT, traceContext: undefined })
    const { traceContext } = attempt
    const inner = { traceId: 'a'.repeat(32), spanId: 'e'.repeat(16), traceFlags: 1 }
    attempt.run(() =>
      context.with(trace.setSpanContext(context.active(), inner), () => {
        tracing.startEnqueue({ ...ENQUEUE, traceContext })
        tracing.startEnqueue(ENQUEUE)
      }),
    )
    expect(parents.slice(1)).toMatchObject([{ spanId: inner.spanId }, { spanId: '00f067aa0ba902b7' }])
  })
})

/** Lets contexts be active during synchronous calls. */
function manageContexts(): void {
  let active: Context = ROOT_CONTEXT
  const manager: ContextManager = {
    active: () => active,
    with(next, call, self, ...args) {
      const previous = active
      active = next
      try {
        return call.call(self, ...args)
      } finally {
        active = previous
      }
    },
    bind: (_context, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  context.setGlobalContextManager(manager)
  onTestFinished(() => context.disable())
}
