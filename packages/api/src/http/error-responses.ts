// What is refused before any handler is asked, and how errors are answered.
import type { Socket } from 'node:net'
import { BullpenError, type Log } from '@bullpen/contract'
import { HTTP_STATUS } from '@bullpen/contract/internal'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Access } from '../auth/access.ts'
import { routeOf } from './access-log.ts'
import { ourError, problemOf, sendProblem } from './problems.ts'
import type { Route } from './route.ts'

export function answerErrors(app: FastifyInstance, log: Log, bodyLimit: number): void {
  app.setErrorHandler((error, request, reply) => {
    const ours = ourError(error, bodyLimit)
    if (HTTP_STATUS[ours.code] === 500) {
      log.error({ err: ours.cause ?? ours, requestId: request.id, route: routeOf(request) }, 'a request failed')
    }
    return sendProblem(request, reply, ours)
  })
  app.setNotFoundHandler((request, reply) => sendProblem(request, reply, noRoute(request)))
}

export function noRoute(request: FastifyRequest): BullpenError {
  return new BullpenError('route_not_found', `there is no ${request.method} ${pathOf(request)}; see /openapi.json`)
}

/** Without the query: it may hold a key. */
function pathOf(request: FastifyRequest): string {
  return (request.url.split('?')[0] ?? '').slice(0, 200)
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** A known path with a wrong method is told which are right; fastify alone would say that there is no such path. */
export function refuseOtherMethods(app: FastifyInstance, table: readonly Route[]): void {
  for (const [url, rows] of Map.groupBy(table, ({ path }) => path)) {
    const taken: string[] = rows.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    const access: Access = rows.some((row) => row.access === 'open') ? 'open' : 'browser'
    app.route({
      method: METHODS.filter((method) => !taken.includes(method)),
      url,
      config: { access },
      onRequest: (request, reply) => {
        reply.header('allow', taken.join(', '))
        const detail = `${request.method} is not allowed here; allowed are ${taken.join(', ')}`
        sendProblem(request, reply, new BullpenError('method_not_allowed', detail))
      },
      handler: () => {},
    })
  }
}

/** Bytes that are not HTTP never become a request, so that no hook sees them. */
export function refuseBrokenHttp(_error: Error, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const problem = problemOf(new BullpenError('invalid_request', 'this is not a whole HTTP request'), 'none')
  const body = JSON.stringify(problem)
  socket.end(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}
