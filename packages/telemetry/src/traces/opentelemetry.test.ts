// Tests the spans of attempts that end in an unusual way, with a tracer that records its calls.
import type { TaskEvent, TaskId } from '@bullpen/contract'
import { ROOT_CONTEXT, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import { describe, expect, it } from 'vitest'
import { openTelemetry } from './opentelemetry.ts'

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const ATTEMPT = { queue: 'cpu', task: 'math.square', id: 'cpu-1' as TaskId, fencingToken: 3, attempt: 2 } as const
const END = { ...ATTEMPT, kind: 'long', correlationId: undefined, durationMs: 1, error: undefined } as const

function openSpans() {
  const ends: { attributes: Record<string, unknown>; status: unknown; exceptions: unknown[] }[] = []
  const parents: unknown[] = []
  const startSpan: Tracer['startSpan'] = (_name, options, parent = ROOT_CONTEXT) => {
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
  return { tracing: openTelemetry({ tracer: { startSpan } as Tracer }), ends, parents }
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

  it('has no parent if the stored trace context is invalid', () => {
    const { tracing, parents } = openSpans()
    const { traceContext } = tracing.startAttempt({ ...ATTEMPT, traceContext: { traceparent: 'x' } })
    expect(parents).toEqual([undefined])
    expect(traceContext).toEqual({ traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` })
  })
})
