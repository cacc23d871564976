// The HTTP server: routes, access, problems, the reference and the board put together; opens nothing itself.
import type { Socket } from 'node:net'
import { BullpenError, HTTP_STATUS, type Log, type TaskId } from '@bullpen/contract'
import cookie from '@fastify/cookie'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { type Access, guard } from './access.ts'
import { addBoard, type BoardQueue } from './board.ts'
import type { ApiContext } from './context.ts'
import { parseJsonBody } from './json-body.ts'
import type { Keyring } from './keyring.ts'
import { openApiDocument } from './openapi.ts'
import { ourError, problemOf, sendProblem } from './problems.ts'
import { addReference } from './reference.ts'
import { callersId } from './request-id.ts'
import type { Route } from './route.ts'
import { routeTable } from './routes.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { createValidator } from './validation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the task that this request stores; set before Redis is asked. */
    taskId: TaskId | undefined
  }
}

export interface ServerOptions extends ApiContext {
  readonly keyring: Keyring
  readonly version: string
  /** The largest body, in bytes. */
  readonly bodyLimit: number
  /** Whether the session cookie goes over https alone. */
  readonly secureCookie: boolean
  readonly observe: (request: AnsweredRequest) => void
  /** For Bull Board; without any there is no board. */
  readonly boardQueues: readonly BoardQueue[]
}

interface AnsweredRequest {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}

/** A caller that trickles its request holds a connection for this long, and at most a second more. */
const REQUEST_TIMEOUT_MS = 3_000
/** An id is at most a queue's name and 27 characters; anything longer is no route. */
const LONGEST_PARAMETER = 128

export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { catalogue, keyring, now, version } = options
  const app = fastify({
    bodyLimit: options.bodyLimit,
    requestTimeout: REQUEST_TIMEOUT_MS,
    http: { headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1_000 },
    // While it shuts down, what has come in is still answered; fastify's own 503 is not a problem+json.
    return503OnClosing: false,
    genReqId: (request) => callersId(request.headers) ?? Buffer.from(options.randomBytes(16)).toString('hex'),
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    // An address that can't be read never becomes a request either, but it has an answer to put headers on.
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply)
      sendProblem(request, reply, ourError(error, options.bodyLimit))
    },
    clientErrorHandler: refuseBrokenHttp,
  })
  app.decorateRequest('taskId', undefined)
  app.setValidatorCompiler(createValidator(catalogue))
  app.setSerializerCompiler(serializerCompiler)
  acceptJsonAlone(app)
  answerErrors(app, options)
  await app.register(cookie)
  app.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply)
    done()
  })
  observeAnswers(app, options)
  app.addHook('onSend', async (_request, reply) => {
    // Otherwise the connection would stay open for the caller's next request, and keep the server from closing.
    if (options.closing.aborted) reply.header('connection', 'close')
  })
  app.addHook('onRequest', guard(keyring, now))
  app.addHook('onRequest', (request, reply, done) => {
    // Before a body is read: what nobody takes needs no reading.
    if (request.is404) sendProblem(request, reply, noRoute(request))
    else done()
  })

  const table = routeTable(options, { keyring, now, secure: options.secureCookie })
  for (const row of table) addRoute(app, row)
  refuseOtherMethods(app, table)
  await addReference(app, openApiDocument(catalogue, table, version))
  if (options.boardQueues.length > 0) await addBoard(app, options.boardQueues, options.log)
  return app
}

function addRoute(app: FastifyInstance, row: Route): void {
  const answers = Object.entries(row.answers).map(([status, { schema }]) => [status, schema] as const)
  app.route({
    method: row.method,
    url: row.path,
    config: { access: row.access },
    schema: {
      ...(row.params === undefined ? {} : { params: row.params }),
      ...(row.query === undefined ? {} : { querystring: row.query }),
      ...(row.body === undefined ? {} : { body: row.body }),
      response: Object.fromEntries(answers),
    },
    handler: (request, reply) =>
      row.handle({ params: request.params, query: request.query, body: request.body, request, reply }),
  })
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ ...SECURITY_HEADERS, 'x-request-id': request.id })
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** A known path with a wrong method is told which are right; fastify alone would say that there is no such path. */
function refuseOtherMethods(app: FastifyInstance, table: readonly Route[]): void {
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

/** Text and forms are not taken: a form of another site could send them without asking. */
function acceptJsonAlone(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    try {
      const encoding = request.headers['content-encoding'] ?? 'identity'
      if (encoding !== 'identity') {
        throw new BullpenError('unsupported_media_type', `the body is encoded as ${encoding}; send it as it is`)
      }
      done(null, parseJsonBody(body))
    } catch (error) {
      done(error as Error)
    }
  })
}

function answerErrors(app: FastifyInstance, { log, bodyLimit }: ServerOptions): void {
  app.setErrorHandler((error, request, reply) => {
    const ours = ourError(error, bodyLimit)
    if (HTTP_STATUS[ours.code] === 500) {
      log.error({ err: ours.cause ?? ours, requestId: request.id, route: routeOf(request) }, 'a request failed')
    }
    return sendProblem(request, reply, ours)
  })
  app.setNotFoundHandler((request, reply) => sendProblem(request, reply, noRoute(request)))
}

function noRoute(request: FastifyRequest): BullpenError {
  return new BullpenError('route_not_found', `there is no ${request.method} ${pathOf(request)}; see /openapi.json`)
}

/** Without the query: it may hold a key. */
function pathOf(request: FastifyRequest): string {
  return (request.url.split('?')[0] ?? '').slice(0, 200)
}

function observeAnswers(app: FastifyInstance, { log, observe }: ServerOptions): void {
  app.addHook('onResponse', (request, reply, done) => {
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
      'request answered',
    )
    done()
  })
}

/** A line for each request that went well would cost more than the request; the metrics count them. */
function levelOf({ statusCode }: FastifyReply): keyof Log {
  if (statusCode >= 500) return 'warn'
  return statusCode >= 400 ? 'info' : 'debug'
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none'
}

/** Bytes that are not HTTP never become a request, so that no hook sees them. */
function refuseBrokenHttp(_error: Error, socket: Socket): void {
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
