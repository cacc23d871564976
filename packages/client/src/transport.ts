// Sends one request to the API with a time limit, retries it if that is safe, and turns errors into ProblemError.
import { setTimeout as sleep } from 'node:timers/promises'
import { ProblemError, problemIn } from './problem-error.ts'

export interface Call {
  readonly method: 'GET' | 'POST'
  /** The path relative to the base URL, including the query. */
  readonly path: string
  readonly body?: unknown
  /** The time limit for a single try, in ms. */
  readonly timeoutMs: number
  /** True if sending the request twice has the same effect as sending it once. Defaults to true for GET and false for POST. */
  readonly repeatable?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface Transport {
  readonly baseUrl: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof globalThis.fetch
  /** How long to keep retrying, counted from the first try. A failure after this time is thrown. */
  readonly retryForMs: number
}

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 2_000

/**
 * Sends a request, retries it if that is safe, and returns the parsed response. @throws ProblemError, or the signal's reason if
 * it aborts.
 */
export async function send(transport: Transport, call: Call): Promise<unknown> {
  const giveUpAt = performance.now() + transport.retryForMs
  for (let delay = INITIAL_DELAY_MS; ; delay = Math.min(delay * 2, MAX_DELAY_MS)) {
    try {
      return await sendOnce(transport, call)
    } catch (error) {
      call.signal?.throwIfAborted()
      if (!(error instanceof ProblemError) || !mayRepeat(call, error)) throw error
      const wait = Math.max(delay * (0.8 + 0.4 * Math.random()), error.retryAfterMs ?? 0)
      if (performance.now() + wait > giveUpAt) throw error
      await pauseFor(wait, call.signal)
    }
  }
}

/** Resolves after `ms`. @throws the signal's reason if it aborts first. */
export async function pauseFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((error) => {
    throw signal?.aborted ? signal.reason : error
  })
}

async function sendOnce({ baseUrl, headers, fetch }: Transport, call: Call): Promise<unknown> {
  const { method, path, body, signal } = call
  using limit = timeLimit(call)
  try {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: limit.signal,
    })
    const text = await response.text()
    if (!response.ok) throw problemIn(response, text)
    return parseResponse(text, response.status)
  } catch (error) {
    if (error instanceof ProblemError || signal?.aborted) throw error
    // Fetch's own message is only "fetch failed". Its cause describes what happened.
    const { message } = error instanceof Error && error.cause instanceof Error ? error.cause : (error as Error)
    throw new ProblemError({ code: 'unreachable', detail: `${method} ${baseUrl.origin}: ${message}`, cause: error })
  }
}

/**
 * Returns a signal that aborts when the time limit expires or when the call's own signal aborts. This is cheaper than
 * AbortSignal.any with AbortSignal.timeout, whose timers live until they fire and take a third of a request's CPU time.
 */
function timeLimit({ timeoutMs, signal }: Call): Disposable & { readonly signal: AbortSignal } {
  const limit = new AbortController()
  const stop = () => limit.abort(signal?.reason)
  const timer = setTimeout(() => {
    limit.abort(new DOMException(`no response within ${timeoutMs} ms`, 'TimeoutError'))
  }, timeoutMs)
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop)
  return {
    signal: limit.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    },
  }
}

function parseResponse(text: string, status: number): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ProblemError({ code: 'unexpected_response', status, detail: 'the response is not JSON', cause })
  }
}

/** If an API, or a proxy in front of it, responds with one of these statuses, it may soon respond normally again. */
const TEMPORARY_STATUSES: readonly number[] = [429, 502, 503, 504]

/**
 * Returns whether the call may be sent again. A look-up may always be repeated. An enqueue may not, because the API creates the
 * id, and a second request could therefore create a second task.
 */
function mayRepeat({ method, repeatable = method === 'GET' }: Call, error: ProblemError): boolean {
  const { code, status, taskId } = error
  if (repeatable) return code === 'unreachable' || (status !== undefined && TEMPORARY_STATUSES.includes(status))
  if (code === 'unreachable') return wasNeverSent(error)
  // A task id in the response means that the task may be stored, and a 503 from a proxy does not show whether it was stored. A
  // draining queue stays closed until it is resumed.
  return status === 503 && code !== 'unexpected_response' && code !== 'queue_draining' && taskId === undefined
}

function wasNeverSent(error: ProblemError): boolean {
  const { cause } = error.cause instanceof Error ? error.cause : error
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
}
