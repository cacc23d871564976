// Lets scripts on the pages of other origins call the API, as the Fetch standard's CORS protocol describes. Credentials are not
// allowed: a script sends an API key, and never a cookie.
import type { onRequestHookHandler } from 'fastify'

/** The headers that scripts may send in addition to those that browsers always allow. */
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'idempotency-key',
  'last-event-id',
  'prefer',
  'traceparent',
  'tracestate',
  'x-request-id',
]

/** The response headers that scripts may read in addition to those that browsers always allow. */
const RESPONSE_HEADERS = [
  'idempotency-replayed',
  'location',
  'preference-applied',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'x-request-id',
]

/** How long a browser may remember that a request is allowed, in seconds. Browsers limit this time to two hours or less. */
const MAX_AGE_S = 7_200

/**
 * Returns a hook that allows these origins to call the routes below `/v1/`. Add the hook before the one that requires a key, because
 * a browser asks without a key whether a request is allowed.
 */
export function allowOrigins(origins: readonly string[]): onRequestHookHandler {
  const allowed = new Set(origins)
  return (request, reply, done) => {
    if (!request.url.startsWith('/v1/')) return done()
    reply.header('vary', 'Origin')
    const { origin } = request.headers
    if (origin === undefined || !allowed.has(origin)) return done()
    reply.header('access-control-allow-origin', origin)
    const isPreflight = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers
    if (isPreflight) {
      reply
        .code(204)
        .headers({
          'access-control-allow-methods': 'GET, POST, DELETE',
          'access-control-allow-headers': REQUEST_HEADERS.join(', '),
          'access-control-max-age': String(MAX_AGE_S),
        })
        .send()
      return
    }
    reply.header('access-control-expose-headers', RESPONSE_HEADERS.join(', '))
    done()
  }
}
