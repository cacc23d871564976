// Tests the reading of a W3C Trace Context.
import { describe, expect, it } from 'vitest'
import { readTraceContext } from './trace-context.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-01`

describe('the trace context of a request', () => {
  it.each([
    ['a traceparent alone', { traceparent }, { traceparent }],
    ['a tracestate with it', { traceparent, tracestate: 'a=1, b=2' }, { traceparent, tracestate: 'a=1, b=2' }],
    [
      'the longest tracestate',
      { traceparent, tracestate: 'x'.repeat(512) },
      { traceparent, tracestate: 'x'.repeat(512) },
    ],
    [
      'a later version with more fields',
      { traceparent: `01${traceparent.slice(2)}-x` },
      { traceparent: `01${traceparent.slice(2)}-x` },
    ],
  ])('is %s', (_name, headers, expected) => {
    expect(readTraceContext(headers)).toEqual(expected)
  })

  it.each([
    ['that is too long', 'x'.repeat(513)],
    ['with a line break', 'a=1\nb=2'],
    ['that is empty', ''],
  ])('has no tracestate %s', (_name, tracestate) => {
    expect(readTraceContext({ traceparent, tracestate })).toEqual({ traceparent })
  })

  it.each([
    ['no traceparent', undefined],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
    ['a parent id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['capital letters', traceparent.toUpperCase()],
    ['version ff', `ff${traceparent.slice(2)}`],
    ['further fields in version 00', `${traceparent}-x`],
    ['a text that is too long', `01${traceparent.slice(2)}-${'x'.repeat(128)}`],
    ['several traceparents', [traceparent, traceparent]],
  ])('is undefined with %s', (_name, given) => {
    expect(readTraceContext({ traceparent: given, tracestate: 'a=1' })).toBeUndefined()
  })
})
