// Sends one request to the API with a time limit, and turns every failure into a ProblemError.
import { ProblemError } from '@bullpen/contract/internal'
import { timeLimit } from '../time-limit.ts'
import { problemIn } from './problem-response.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  /** The path relative to the API's address, including the query. */
  readonly path: string
  /** The body as JSON text. */
  readonly body?: string | undefined
  /** Headers in addition to those that the transport adds to every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long the request asks the API to wait, in ms. This time is added to the time limit. Defaults to 0. */
  readonly waitMs?: number
  /** Returns whether a successful response is one that a Bullpen API sends. By default, any JSON is. */
  readonly isExpected?: (response: unknown) => boolean
}

export interface HttpSettings {
  readonly baseUrl: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof globalThis.fetch
  /** The time limit for a request, in ms, in addition to the time that it asks the API to wait. */
  readonly timeoutMs: number
}

/** Sends the request and returns the parsed response. @throws ProblemError, or the signal's reason if the signal aborts. */
export async function sendRequest(
  { baseUrl, headers, fetch, timeoutMs }: HttpSettings,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { method, path, body, waitMs = 0, isExpected = () => true } = request
  const limitMs = timeoutMs + waitMs
  const limit = timeLimit(limitMs, signal, () => new DOMException(`no response within ${limitMs} ms`, 'TimeoutError'))
  try {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: {
        ...headers,
        ...request.headers,
        ...(body === undefined ? undefined : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
      signal: limit.signal,
    })
    const text = await response.text()
    if (!response.ok) throw problemIn(response, text)
    const result = parsed(text, response)
    if (isExpected(result)) return result
    const detail = 'the response does not fit the request; is this the address of a Bullpen API?'
    throw new ProblemError({ code: 'unexpected_response', status: response.status, detail })
  } catch (error) {
    if (error instanceof ProblemError) throw error
    if (signal?.aborted) throw signal.reason
    throw unreachable(`${method} ${baseUrl.origin}`, error)
  } finally {
    limit.stop()
  }
}

function parsed(text: string, { status }: Response): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ProblemError({ code: 'unexpected_response', status, detail: 'the response is not JSON', cause })
  }
}

/** The codes with which Node reports that no connection was established. Browsers do not report a reason. */
const NEVER_SENT: readonly unknown[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]

function unreachable(request: string, error: unknown): ProblemError {
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
