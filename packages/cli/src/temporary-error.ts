// Decides whether a request that has failed may succeed later.
import type { ProblemError } from '@bullpen/client'

/** Returns whether the API, Redis or the network may recover, or the request was one too many. */
export function isTemporary({ code, status = 0 }: ProblemError): boolean {
  return code === 'unreachable' || status === 408 || status === 429 || status >= 500
}
