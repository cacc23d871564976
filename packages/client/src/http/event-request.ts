// Reads one stream of events from the API, until the API ends it or the connection is lost.
import { ProblemError, type TransportEvent } from '@bullpen/contract/internal'
import { serverSentEvents } from '../events/event-source.ts'
import { timeLimit } from '../time-limit.ts'
import { parsed, problemIn } from './problem-response.ts'
import { refuseRedirect } from './redirect.ts'
import { brokenOff, type HttpSettings, isBrokenOff, unreachable } from './request.ts'
import { addressOf } from './request-parts.ts'

/** The API sends a heartbeat every 15 s. A connection on which nothing arrives for this long is lost, in ms. */
const SILENCE_MS = 45_000

/** The types of events that this client knows. A newer API may send others, which are left out. */
const TYPES: Readonly<Record<NonNullable<TransportEvent['event']>['type'], true>> = {
  enqueued: true,
  started: true,
  progress: true,
  log: true,
  retrying: true,
  requeued: true,
  ended: true,
  retry_requested: true,
  snapshot: true,
  group_ended: true,
  gap: true,
  disconnected: true,
}

/** @throws ProblemError, or the signal's reason if the signal aborts. */
export async function* requestEvents(
  { baseUrl, headers, fetch, timeoutMs }: HttpSettings,
  path: string,
  after: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<TransportEvent, void, void> {
  const request = `GET ${baseUrl.origin}`
  const silence = (ms: number) =>
    timeLimit(ms, signal, () => new DOMException(`nothing received within ${ms} ms`, 'TimeoutError'))
  const connection = new AbortController()
  let limit = silence(timeoutMs)
  const watch = (ms: number): void => {
    limit.stop()
    limit = silence(ms)
    limit.signal.addEventListener('abort', () => connection.abort(limit.signal.reason), { once: true })
    if (limit.signal.aborted) connection.abort(limit.signal.reason)
  }
  watch(timeoutMs)
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  try {
    const address = addressOf(baseUrl, path)
    const response = await fetch(address, {
      headers: { ...headers, accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) },
      redirect: 'manual',
      signal: connection.signal,
    })
    refuseRedirect(response, address, 'GET')
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    if (!response.ok || !isStream || response.body === null) {
      const text = await response.text()
      if (isBrokenOff(response, text)) throw brokenOff(response)
      throw response.ok ? notAStream(request, response.status) : problemIn(response, text, request)
    }
    const body = response.body.getReader()
    reader = body
    const chunks = async function* (): AsyncGenerator<Uint8Array, void, void> {
      for (;;) {
        watch(SILENCE_MS)
        const { done, value } = await body.read()
        if (done) return
        yield value
      }
    }
    for await (const { id, data, retryMs } of serverSentEvents(chunks())) {
      yield { id, event: data === undefined ? undefined : eventIn(data), retryMs }
    }
  } catch (error) {
    if (error instanceof ProblemError) throw error
    if (signal?.aborted) throw signal.reason
    throw unreachable(request, error)
  } finally {
    limit.stop()
    // An aborted request may keep its connection, so the body is cancelled as well.
    connection.abort()
    reader?.cancel().catch(() => {})
  }
}

/** Returns undefined for data that this client does not know. */
function eventIn(data: string): TransportEvent['event'] {
  const event = parsed(data)
  const isKnown = typeof event === 'object' && event !== null && 'type' in event && `${event.type}` in TYPES
  return isKnown ? (event as TransportEvent['event']) : undefined
}

function notAStream(request: string, status: number): ProblemError {
  const detail = `${request}: the HTTP ${status} response is not a stream of events, as a Bullpen API sends it; check the API's address and version, and any proxy in front of it`
  return new ProblemError({ code: 'unexpected_response', outcome: 'refused', status, detail })
}
