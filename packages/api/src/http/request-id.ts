// Determines the id that connects a request with its response, its log lines and its task. The caller can provide this id.
import type { IncomingHttpHeaders } from 'node:http'
import { traceIdOf } from '@bullpen/contract/internal'

/** An id must be printable ASCII without spaces, because it is written to logs and headers. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/

/** Returns X-Request-Id if it is usable, or else the trace id of traceparent, or undefined if neither is usable. */
export function callersId(headers: IncomingHttpHeaders): string | undefined {
  const given = headers['x-request-id']
  if (typeof given === 'string' && REQUEST_ID.test(given)) return given
  const trace = headers['traceparent']
  return typeof trace === 'string' ? traceIdOf(trace) : undefined
}
