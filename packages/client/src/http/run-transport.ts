// Carries the calls about the runs of pipelines over the HTTP API.
import type { RunTransport } from '@bullpen/contract/internal'
import type { HttpRequest } from './request.ts'
import { queryText, toJson, waitQuery } from './request-parts.ts'
import { isDeleted } from './responses.ts'
import { isRun, isRunErrors } from './run-responses.ts'

/** How many errors one request returns. */
const PAGE_SIZE = 200

/** `send` sends a request once. */
export function runTransport(
  send: <T>(request: HttpRequest<T>, signal: AbortSignal | undefined) => Promise<T>,
): RunTransport {
  const pathOf = (id: string): string => `v1/runs/${encodeURIComponent(id)}`
  return {
    start(request) {
      const body = toJson(request)
      return (signal) => send({ method: 'POST', path: 'v1/runs', body, isExpected: isRun }, signal)
    },
    cancel(id, by) {
      const body = by === undefined ? undefined : JSON.stringify({ by })
      return (signal) => send({ method: 'POST', path: `${pathOf(id)}/cancel`, body, isExpected: isRun }, signal)
    },
    delete: (id, by) => (signal) =>
      send({ method: 'DELETE', path: `${pathOf(id)}${queryText({ by })}`, isExpected: isDeleted }, signal),
    show: (id, waitMs) => (signal) =>
      send({ method: 'GET', path: `${pathOf(id)}${waitQuery(waitMs)}`, waitMs, isExpected: isRun }, signal),
    errors: (id, from) => (signal) => {
      const path = `${pathOf(id)}/errors?from=${from}&limit=${PAGE_SIZE}`
      return send({ method: 'GET', path, isExpected: isRunErrors }, signal)
    },
  }
}
