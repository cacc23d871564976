// Sends one request to the API with a time limit, and turns every failure into a ProblemError.
import { ProblemError } from '@bullpen/contract/internal'
import { timeLimit } from '../time-limit.ts'
import { CONNECT_TIMEOUT } from './node-send.ts'
import { beginningOf, parsed, problemIn } from './problem-response.ts'
import { refuseRedirect } from './redirect.ts'
import { addressOf } from './request-parts.ts'
import type { HttpResponse, Send } from './send.ts'
import type { Check } from './shape.ts'

export interface HttpRequest<T> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path relative to the API's address, including the query. Its parameters are already percent-encoded. */
  readonly path: string
  /** The body as JSON text. */
  readonly body?: string | undefined
  /** Headers in addition to those that the transport adds to every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long the request asks the API to wait, in ms. This time is added to the time limit. Defaults to 0. */
  readonly waitMs?: number
  /** Returns whether a successful response is one that a Bullpen API sends to this request. */
  readonly isExpected: Check<T>
}

export interface HttpSettings {
  readonly baseUrl: URL
  readonly headers: Readonly<Record<string, string>>
  readonly send: Send
  /** Reads streams of events. */
  readonly fetch: typeof globalThis.fetch
  /** The time limit for a request, in ms, in addition to the time that it asks the API to wait. */
  readonly timeoutMs: number
}

/** Sends the request and returns the parsed response. @throws ProblemError, or the signal's reason if the signal aborts. */
export async function sendRequest<T>(
  { baseUrl, headers, send, timeoutMs }: HttpSettings,
  request: HttpRequest<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const { method, path, body, waitMs = 0, isExpected } = request
  const limitMs = timeoutMs + waitMs
  const limit = timeLimit(limitMs, signal, () => new DOMException(`no response within ${limitMs} ms`, 'TimeoutError'))
  try {
    const address = addressOf(baseUrl, path)
    const response = await send(address, {
      method,
      headers: {
        ...headers,
        ...request.headers,
        ...(body === undefined ? undefined : { 'content-type': 'application/json' }),
      },
      body,
      signal: limit.signal,
    })
    const { text } = response
    refuseRedirect(response, address, method)
    const result = parsed(text)
    if (response.ok && isExpected(result)) return result
    if (isBrokenOff(response, text)) throw brokenOff(response)
    if (!response.ok) throw problemIn(response, text, `${method} ${baseUrl.origin}`)
    throw unexpected(`${method} ${baseUrl.origin}`, response.status, text)
  } catch (error) {
    if (error instanceof ProblemError) throw error
    if (signal?.aborted) throw signal.reason
    throw unreachable(`${method} ${baseUrl.origin}`, error)
  } finally {
    limit.stop()
  }
}

/** Returns whether a success lacks its end. The API's responses are JSON objects, and none is empty. */
export function isBrokenOff({ ok }: Pick<HttpResponse, 'ok'>, text: string): boolean {
  return ok && (text === '' || (text.startsWith('{') && parsed(text) === undefined))
}

export function brokenOff({ status }: Pick<HttpResponse, 'status'>): Error {
  return new Error(`the HTTP ${status} response was cut off`)
}

/** Something other than a Bullpen API has responded. It may have passed the request on before, so the outcome is unknown. */
function unexpected(request: string, status: number, text: string): ProblemError {
  const detail = `${request}: the HTTP ${status} response is not one that a Bullpen API sends; it ${beginningOf(text)}; check the API's address and version, and any proxy in front of it`
  return new ProblemError({ code: 'unexpected_response', outcome: 'unknown', status, detail })
}

/** The codes with which Node reports that no connection was established. Browsers do not report a reason. */
const NEVER_SENT: readonly unknown[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  CONNECT_TIMEOUT,
]

/** Creates the error for a request that got no response, or whose response broke off. */
export function unreachable(request: string, error: unknown): ProblemError {
  // Fetch's own message is only "fetch failed". On Node, its cause describes what happened.
  const reason: unknown = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const { message, code } = reason as { readonly message?: string; readonly code?: unknown }
  return new ProblemError({
    code: 'unreachable',
    outcome: NEVER_SENT.includes(code) ? 'refused' : 'unknown',
    detail: `${request}: ${message ?? String(reason)}`,
    cause: error,
  })
}
