// The id that connects a request with its answer, its log lines and its task: the caller's, or one generated here.
import type { IncomingHttpHeaders } from 'node:http'

/** Printable ASCII without spaces, because it is written into logs and headers. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/
/** W3C Trace Context; ids of only zeros are invalid. */
const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/

/** X-Request-Id, or else the trace id of traceparent; undefined if neither is usable. */
export function callersId(headers: IncomingHttpHeaders): string | undefined {
  const given = headers['x-request-id']
  if (typeof given === 'string' && REQUEST_ID.test(given)) return given
  const trace = headers['traceparent']
  return typeof trace === 'string' ? TRACEPARENT.exec(trace)?.[1] : undefined
}
