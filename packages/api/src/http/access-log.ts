// Counts and logs every request with its route and result, but without its query, which may contain a key.
import type { Log } from '@bullpen/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

export interface AnsweredRequest {
  readonly method: string
  readonly route: string
  readonly status: number
  /** Undefined if the request never arrived. */
  readonly seconds?: number
}

/** The route of a request for which there is none, and the method of one that could not be read. */
export const NONE = 'none'

export interface Observers {
  readonly log: Log
  readonly observe: (request: AnsweredRequest) => void
}

export function logRequests(app: FastifyInstance, observers: Observers): void {
  app.addHook('onResponse', (request, reply, done) => {
    logRequest(request, reply, observers)
    done()
  })
}

/** Counts and logs a request whose URL fastify could not read, once it has been answered. No hooks are called for such a request. */
export function logUnreadable(request: FastifyRequest, reply: FastifyReply, observers: Observers): void {
  reply.raw.once('finish', () => logRequest(request, reply, observers))
}

function logRequest(request: FastifyRequest, reply: FastifyReply, { log, observe }: Observers): void {
  const answered = {
    method: request.method,
    route: routeOf(request),
    status: reply.statusCode,
    seconds: reply.elapsedTime / 1_000,
  }
  observe(answered)
  log[levelOf(reply)](
    {
      requestId: request.id,
      method: answered.method,
      route: answered.route,
      status: answered.status,
      durationMs: Math.round(reply.elapsedTime),
      ...(request.taskId === undefined ? {} : { id: request.taskId }),
    },
    'request completed',
  )
}

/**
 * Returns the level of a request's log line. Successful requests are logged only at debug level, because a log line would cost
 * more than the request and the metrics already count them.
 */
function levelOf({ statusCode }: FastifyReply): keyof Log {
  // 501 and 505 are the caller's errors: the API rejects what the caller has sent.
  if (statusCode === 500 || statusCode === 503) return 'warn'
  return statusCode >= 400 ? 'info' : 'debug'
}

/** Returns the pattern of the route, such as `/v1/tasks/:id`, or `none` if no route matches or the URL cannot be read. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions?.url ?? NONE
}
