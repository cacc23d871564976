// An API behind a gateway that ends each request after a time, in the time of `setTimeout`, which tests may fake. What the API waits for
// happens at `endsAtMs`.
const AT = '2026-01-01T00:00:00.000Z'

const FOREVER_MS = 2 ** 31 - 1

/** How a gateway, or what is between it and the API, ends a request. */
export const CUTS = ['reset', 'empty', 'truncated', 408, 502, 503, 504, 524] as const

export type Cut = (typeof CUTS)[number]

interface Gateway {
  readonly cut: Cut
  /** A number, or a function of the time at which a request arrives. 0 means that the gateway ends the request at once. */
  readonly cutAfterMs: number | ((arrivedAtMs: number) => number)
  readonly endsAtMs: number
  /** Requests that arrive before this time get no response. Defaults to 0. */
  readonly silentUntilMs?: number
}

/** Returns the `fetch` for a client of this API, and what it has been asked for. */
export function gateway({ cut, cutAfterMs: cutAfter, endsAtMs, silentUntilMs = 0 }: Gateway) {
  const beganAt = performance.now()
  const paths: string[] = []
  const fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(String(input))
    paths.push(`${url.pathname}${url.search}`)
    const arrivedAtMs = performance.now() - beganAt
    const leftMs = endsAtMs - arrivedAtMs
    const cutAfterMs = typeof cutAfter === 'number' ? cutAfter : cutAfter(arrivedAtMs)
    if (arrivedAtMs < silentUntilMs) await sleep(FOREVER_MS, init.signal)
    const waitMs = waitOf(url, init)
    const takesMs = Math.max(0, Math.min(leftMs, waitMs))
    const isCut = takesMs >= cutAfterMs
    await sleep(Math.min(takesMs, cutAfterMs), init.signal)
    if (isCut) return ended(cut)
    return url.pathname.endsWith('/events')
      ? events(url, leftMs, cutAfterMs, init.signal)
      : Response.json(found(url, leftMs <= waitMs))
  }
  return { fetch, paths }
}

/** Returns how long the request waits for the end, in ms. */
function waitOf(url: URL, { body }: RequestInit): number {
  const query = Number(url.searchParams.get('wait') ?? 0) * 1_000
  return typeof body === 'string' && body.includes('"block":"30s"') ? 30_000 : query
}

function ended(cut: Cut): Response {
  if (cut === 'reset') throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
  if (cut === 'empty') return new Response('')
  if (cut === 'truncated') return new Response('{"id":"cpu-01jd', { headers: { 'content-type': 'application/json' } })
  return new Response('<html>', { status: cut })
}

/** A stream whose last event comes after `leftMs`, unless the gateway cuts it before. */
function events({ pathname }: URL, leftMs: number, cutAfterMs: number, signal: RequestInit['signal']): Response {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(bytes('retry: 1000\n\n'))
      await sleep(Math.max(0, Math.min(leftMs, cutAfterMs)), signal)
      if (leftMs > cutAfterMs) return controller.error(new TypeError('terminated'))
      const type = pathname.startsWith('/v1/groups') ? 'group_ended' : 'ended'
      controller.enqueue(bytes(`data: ${JSON.stringify({ type, status: 'completed' })}\n\n`))
      controller.close()
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

function found({ pathname }: URL, isOver: boolean): object {
  const queue = { task: 'a', queue: 'cpu', state: 'ended', taskId: 'b' }
  const source = { ...queue, emitted: 0, segments: 0 }
  const links = { self: 's', cancel: 'c' }
  const accepted = { id: 'cpu-1', action: 'created', status: 'waiting', links }
  if (pathname.endsWith('/cancel')) {
    return { ...accepted, outcome: isOver ? 'cancelled' : 'cancelling', status: 'cancelled' }
  }
  if (pathname.startsWith('/v1/commands')) {
    return {
      id: 'c',
      spec: { action: 'pause' },
      by: 'ann',
      at: AT,
      outcome: isOver ? 'done' : 'pending',
      responses: [],
    }
  }
  if (pathname.startsWith('/v1/groups')) {
    const counts = { count: 1, ended: 0, progress: 0, queues: [] }
    return { id: 'g', state: isOver ? 'ended' : 'open', ...counts, createdAt: AT, timeoutAt: AT }
  }
  if (pathname.startsWith('/v1/runs')) {
    const run = { id: 'r', pipeline: 'p', source, stages: [], results: 0, errors: 0, startedAt: AT, timeoutAt: AT }
    return { ...run, state: isOver ? 'ended' : 'running', result: 'completed', output: 16 }
  }
  if (pathname.endsWith('/bulk')) return { failed: 0, results: [accepted] }
  if (pathname === '/v1/tasks') return accepted
  return {
    ...{ ...accepted, task: 'a', version: 1, queue: 'cpu', status: isOver ? 'completed' : 'active', output: 16 },
    ...{ attemptsMade: 1, maxAttempts: 5, priority: 0, fencingToken: 1, input: null, meta: {}, tags: [] },
    ...{ enqueuedAt: AT, attempts: [] },
  }
}

function sleep(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
