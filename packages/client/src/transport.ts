// One request to the API: sent, timed, repeated where that is safe, and its answer or problem read.
import { setTimeout as sleep } from 'node:timers/promises'
import { ProblemError, problemIn } from './problem-error.ts'

export interface Call {
  readonly method: 'GET' | 'POST'
  /** With its query. */
  readonly path: string
  readonly body?: unknown
  /** For one try, in ms. */
  readonly timeoutMs: number
  /** Sent twice it is one: it names itself. */
  readonly repeatable?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface Transport {
  readonly baseUrl: URL
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof globalThis.fetch
  /** From the first try; after it a failure is thrown and no longer repeated. */
  readonly retryForMs: number
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/** The JSON that the API answered. @throws ProblemError; the signal's reason when it aborts. */
export async function send(transport: Transport, call: Call): Promise<unknown> {
  const giveUpAt = performance.now() + transport.retryForMs
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return await sendOnce(transport, call)
    } catch (error) {
      call.signal?.throwIfAborted()
      if (!(error instanceof ProblemError) || !mayRepeat(call, error)) throw error
      const wait = Math.max(pause * (0.8 + 0.4 * Math.random()), error.retryAfterMs ?? 0)
      if (performance.now() + wait > giveUpAt) throw error
      await pauseFor(wait, call.signal)
    }
  }
}

/** Resolves after `ms`. @throws the signal's reason when it aborts before. */
export async function pauseFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((error) => {
    throw signal?.aborted ? signal.reason : error
  })
}

async function sendOnce({ baseUrl, headers, fetch }: Transport, call: Call): Promise<unknown> {
  const { method, path, body, signal } = call
  using limit = limitedBy(call)
  try {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: limit.signal,
    })
    const text = await response.text()
    if (!response.ok) throw problemIn(response, text)
    return read(text, response.status)
  } catch (error) {
    if (error instanceof ProblemError || signal?.aborted) throw error
    // fetch says only "fetch failed"; what happened is its cause.
    const { message } = error instanceof Error && error.cause instanceof Error ? error.cause : (error as Error)
    throw new ProblemError({ code: 'unreachable', detail: `${method} ${baseUrl.origin}: ${message}`, cause: error })
  }
}

/** As AbortSignal.any with AbortSignal.timeout, whose timers live until they fire: a third of a request's CPU time. */
function limitedBy({ timeoutMs, signal }: Call): Disposable & { readonly signal: AbortSignal } {
  const limit = new AbortController()
  const stop = () => limit.abort(signal?.reason)
  const timer = setTimeout(() => {
    limit.abort(new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError'))
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

function read(text: string, status: number): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ProblemError({ code: 'unexpected_answer', status, detail: 'the answer is not JSON', cause })
  }
}

/** The statuses of an API, or of a proxy before it, that may soon answer. */
const NOT_NOW: readonly number[] = [429, 502, 503, 504]

/** Looking up twice is harmless. The API makes the ids, so enqueueing twice may make two tasks. */
function mayRepeat({ method, repeatable = method === 'GET' }: Call, error: ProblemError): boolean {
  const { code, status, taskId } = error
  if (repeatable) return code === 'unreachable' || (status !== undefined && NOT_NOW.includes(status))
  if (code === 'unreachable') return wasNeverSent(error)
  // An id in the answer says that the task may be stored; a 503 that is not ours says nothing.
  // Nor does a queue open again by itself.
  return status === 503 && code !== 'unexpected_answer' && code !== 'queue_draining' && taskId === undefined
}

function wasNeverSent(error: ProblemError): boolean {
  const { cause } = error.cause instanceof Error ? error.cause : error
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
}
