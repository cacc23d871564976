// Determines the id that connects a request with its response, its log lines and its task. The caller can provide this id.
import type { IncomingHttpHeaders } from 'node:http'

/** An id must be printable ASCII without spaces, because it is written to logs and headers. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/
/** A header as defined by W3C Trace Context, in which ids of only zeros are invalid. */
const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/

/** Returns X-Request-Id if it is usable, or else the trace id of traceparent, or undefined if neither is usable. */
export function callersId(headers: IncomingHttpHeaders): string | undefined {
  const given = headers['x-request-id']
  if (typeof given === 'string' && REQUEST_ID.test(given)) return given
  const trace = headers['traceparent']
  return typeof trace === 'string' ? TRACEPARENT.exec(trace)?.[1] : undefined
}
