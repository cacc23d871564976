// The transport over Bullpen's HTTP API, for Node and browsers.
import { BullpenError, type Duration, milliseconds } from '@bullpen/contract'
import type { TaskTransport, TransportEnqueue, TransportEvent } from '@bullpen/contract/internal'
import { requestEvents } from './event-request.ts'
import { groupTransport } from './group-transport.ts'
import { idempotencyHeader } from './idempotency-header.ts'
import { errorOf } from './problem-response.ts'
import { type HttpRequest, sendRequest } from './request.ts'
import { toJson, waitQuery } from './request-parts.ts'
import { isBulkResponseFor, isCancelled, isEnqueueResponse, isTask } from './responses.ts'
import { runTransport } from './run-transport.ts'
import { createSend } from './send.ts'

export interface HttpOptions {
  /**
   * An id that is sent as `X-Request-Id` with every request. It also appears in the log lines of the tasks that the client
   * enqueues.
   */
  readonly correlationId?: string
  /**
   * The time limit for a single try, in addition to the time that the request may wait at the API, such as for room in a full queue.
   * Defaults to '10s'.
   */
  readonly requestTimeout?: Duration
  /**
   * The function that sends requests. Defaults to the global `fetch`. On Node, it defaults to Node's HTTP client with its global agent,
   * which takes less CPU time, and only streams of events use `fetch`. Node's client is not used while instrumentation listens to `fetch`,
   * or if the program has replaced `fetch` or, with undici's `setGlobalDispatcher`, what sends its requests by another class than `Agent`.
   * If you have set an `Agent` with settings of its own, pass `fetch`.
   */
  readonly fetch?: typeof globalThis.fetch
}

export interface HttpTransport extends TaskTransport {
  /** Sends any request once and returns the parsed response. @throws ProblemError, or the signal's reason if the signal aborts. */
  send<T>(request: HttpRequest<T>, signal: AbortSignal | undefined): Promise<T>
  /** Reads one stream of events, after this id if it is given. @throws like {@link TaskTransport.events}. */
  stream(path: string, after: string | undefined, signal: AbortSignal | undefined): AsyncIterable<TransportEvent>
}

/**
 * Creates the transport to the API at `url`, such as `'http://127.0.0.1:8080'`. If the address has a path, requests are sent to
 * `<url>/v1/…`. The API key is sent as `Authorization: Bearer`. Creating a transport does not open a connection.
 *
 * @throws BullpenError `invalid_configuration` if `url` is not an http or https URL or contains a password, a query or a fragment, or if
 * the key is missing or cannot be sent in a header, and `invalid_duration`.
 */
export function http(url: string | URL, apiKey: string, options: HttpOptions = {}): HttpTransport {
  const { correlationId, requestTimeout = '10s', fetch = globalThis.fetch } = options
  checkApiKey(apiKey)
  const settings = {
    baseUrl: parseUrl(url),
    send: createSend(options.fetch),
    fetch,
    timeoutMs: milliseconds(requestTimeout, 'requestTimeout'),
    headers: {
      authorization: `Bearer ${apiKey}`,
      accept: 'application/json',
      ...(correlationId === undefined ? {} : { 'x-request-id': correlationId }),
    },
  }

  const idempotencyHeaders = (options: TransportEnqueue) => {
    const { idempotencyKey: key, idempotencyLifeS: lifeS, waitMs, retryForMs = 0 } = options
    // The first try, the repeats and the last try may each wait.
    const repeatedForMs = retryForMs + 2 * settings.timeoutMs + 3 * waitMs
    return { 'idempotency-key': idempotencyHeader({ key, lifeS, repeatedForMs }) }
  }

  const transport: HttpTransport = {
    send: (request, signal) => sendRequest(settings, request, signal),
    stream: (path, after, signal) => requestEvents(settings, path, after, signal),

    enqueue(task, options) {
      const request = {
        method: 'POST',
        path: 'v1/tasks',
        body: toJson(task),
        headers: idempotencyHeaders(options),
        waitMs: options.waitMs,
        isExpected: isEnqueueResponse,
      } as const
      return (signal) => transport.send(request, signal)
    },

    enqueueBulk(tasks, options) {
      const { idempotencyKey, atomic } = options
      const request = {
        method: 'POST',
        path: 'v1/tasks/bulk',
        body: toJson(atomic ? { tasks, atomic } : { tasks }),
        headers: idempotencyHeaders(options),
        waitMs: options.waitMs,
        isExpected: isBulkResponseFor(tasks.length),
      } as const
      return async (signal) => {
        const { results } = await transport.send(request, signal)
        return results.map((result) => {
          if ('error' in result) return { error: errorOf(result.error) }
          if (idempotencyKey !== undefined || !('replayed' in result)) return result
          // Only an earlier try of this call has had the generated key.
          const { replayed: _, ...stored } = result
          return stored
        })
      }
    },

    task(id, waitMs) {
      const path = `v1/tasks/${encodeURIComponent(id)}${waitQuery(waitMs)}`
      return (signal) => transport.send({ method: 'GET', path, waitMs, isExpected: isTask }, signal)
    },

    events: (id) => (after, signal) => transport.stream(`v1/tasks/${encodeURIComponent(id)}/events`, after, signal),

    cancel(id, { waitMs, by }) {
      const path = `v1/tasks/${encodeURIComponent(id)}/cancel${waitQuery(waitMs)}`
      const body = by === undefined ? undefined : JSON.stringify({ by })
      return (signal) => transport.send({ method: 'POST', path, body, waitMs, isExpected: isCancelled }, signal)
    },

    groups: groupTransport(
      (request, signal) => transport.send(request, signal),
      (path, after, signal) => transport.stream(path, after, signal),
    ),
    runs: runTransport((request, signal) => transport.send(request, signal)),

    // The connections belong to `fetch`.
    async close() {},
  }
  return transport
}

/** @throws BullpenError whose message does not contain the key. */
function checkApiKey(apiKey: unknown): void {
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return
  const found =
    typeof apiKey !== 'string' || apiKey === ''
      ? 'the API key is missing'
      : 'the API key contains a space, a line break or a character outside ASCII'
  throw new BullpenError('invalid_configuration', `${found}; pass the key as the second argument of http()`)
}

function parseUrl(given: string | URL): URL {
  const text = String(given)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    // A password may precede the host.
    const shown = JSON.stringify(text.replace(/[^/]*@/, '***@'))
    throw new BullpenError('invalid_configuration', `the API's URL is ${shown}; expected an http or https URL`)
  }
  if (url.username !== '' || url.password !== '') {
    const problem = "the API's URL contains a user name or a password, which fetch does not accept"
    throw new BullpenError('invalid_configuration', `${problem}; pass the API key as the second argument of http()`)
  }
  if (url.search !== '' || url.hash !== '') {
    const problem = "the API's URL contains a query or a fragment, which requests would drop"
    throw new BullpenError('invalid_configuration', `${problem}; expected a URL such as https://host/path`)
  }
  // Without a trailing slash, a relative URL would replace the last segment of the path.
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}
