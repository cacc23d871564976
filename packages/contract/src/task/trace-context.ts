// The trace that a task belongs to, as W3C Trace Context defines it (https://www.w3.org/TR/trace-context/).

/** The headers of W3C Trace Context. A handler can send them along with its own requests. */
export interface TraceContext {
  readonly traceparent: string
  /** At most 512 characters. */
  readonly tracestate?: string
}

/** In version 00, nothing follows the flags. Ids of only zeros are invalid, and so is version ff. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]*)?$/
/** The standard permits dropping longer headers, and no known program sends them. */
const MAX_TRACEPARENT_LENGTH = 128
/** The standard requires that at least this many characters are passed on. */
const MAX_TRACESTATE_LENGTH = 512
const TRACESTATE = /^[\x20-\x7e]+$/

/**
 * Returns the trace context of a request, or undefined if its `traceparent` is missing or invalid. A `tracestate` that is invalid or
 * has more than 512 characters is left out, as the standard allows.
 */
export function readTraceContext(headers: Readonly<Record<string, unknown>>): TraceContext | undefined {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string' || traceIdOf(traceparent) === undefined) return undefined
  const isUsable =
    typeof tracestate === 'string' && tracestate.length <= MAX_TRACESTATE_LENGTH && TRACESTATE.test(tracestate)
  return isUsable ? { traceparent, tracestate } : { traceparent }
}

/** Returns the trace id in a `traceparent`, or undefined if it is invalid. */
export function traceIdOf(traceparent: string): string | undefined {
  if (traceparent.length > MAX_TRACEPARENT_LENGTH) return undefined
  const [, version, traceId, rest] = TRACEPARENT.exec(traceparent) ?? []
  return version === '00' && rest !== undefined ? undefined : traceId
}
