// Carries the calls about groups over the HTTP API.
import type { EventTry, GroupTransport } from '@bullpen/contract/internal'
import { isGroup, isGroupResults, isMembersAdded } from './group-responses.ts'
import { idempotencyHeader } from './idempotency-header.ts'
import type { HttpRequest } from './request.ts'
import { toJson, waitQuery } from './request-parts.ts'

/** How many members one request returns. */
const PAGE_SIZE = 200

/** `send` sends a request once. `stream` reads the stream at a path once. */
export function groupTransport(
  send: <T>(request: HttpRequest<T>, signal: AbortSignal | undefined) => Promise<T>,
  stream: (path: string, ...args: Parameters<EventTry>) => ReturnType<EventTry>,
): GroupTransport {
  const pathOf = (id: string): string => `v1/groups/${encodeURIComponent(id)}`
  return {
    create(request) {
      const body = toJson(request)
      return (signal) => send({ method: 'POST', path: 'v1/groups', body, isExpected: isGroup }, signal)
    },
    add(id, request, key) {
      const path = `${pathOf(id)}/tasks`
      const body = toJson(request)
      const headers = { 'idempotency-key': idempotencyHeader({ key, lifeS: undefined, repeatedForMs: 0 }) }
      return (signal) => send({ method: 'POST', path, body, headers, isExpected: isMembersAdded }, signal)
    },
    seal: (id) => (signal) => send({ method: 'POST', path: `${pathOf(id)}/seal`, isExpected: isGroup }, signal),
    cancel(id, by) {
      const body = by === undefined ? undefined : JSON.stringify({ by })
      return (signal) => send({ method: 'POST', path: `${pathOf(id)}/cancel`, body, isExpected: isGroup }, signal)
    },
    show: (id, waitMs) => (signal) =>
      send({ method: 'GET', path: `${pathOf(id)}${waitQuery(waitMs)}`, waitMs, isExpected: isGroup }, signal),
    results: (id, from) => (signal) => {
      const path = `${pathOf(id)}/results?from=${from}&limit=${PAGE_SIZE}`
      return send({ method: 'GET', path, isExpected: isGroupResults }, signal)
    },
    events: (id) => (after, signal) => stream(`${pathOf(id)}/events`, after, signal),
  }
}
