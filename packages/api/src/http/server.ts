// The HTTP server: routes, access, problems, the reference and the board put together; opens nothing itself.

import type { TaskId } from '@bullpen/contract'
import cookie from '@fastify/cookie'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { serializerCompiler } from 'fastify-type-provider-zod'
import { guard } from '../auth/access.ts'
import type { Keyring } from '../auth/keyring.ts'
import { addBoard, type BoardQueue } from '../board/board.ts'
import { openApiDocument } from '../docs/openapi.ts'
import { addReference } from '../docs/reference.ts'
import { type Observers, observeAnswers } from './access-log.ts'
import type { ApiContext } from './context.ts'
import { answerErrors, noRoute, refuseBrokenHttp, refuseOtherMethods } from './error-responses.ts'
import { acceptJsonAlone } from './json-body.ts'
import { ourError, sendProblem } from './problems.ts'
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

export interface ServerOptions extends ApiContext, Observers {
  readonly keyring: Keyring
  readonly version: string
  /** The largest body, in bytes. */
  readonly bodyLimit: number
  /** Whether the session cookie goes over https alone. */
  readonly secureCookie: boolean
  /** For Bull Board; without any there is no board. */
  readonly boardQueues: readonly BoardQueue[]
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
  app.decorateRequest('keyPrint', undefined)
  app.setValidatorCompiler(createValidator(catalogue))
  app.setSerializerCompiler(serializerCompiler)
  acceptJsonAlone(app)
  answerErrors(app, options.log, options.bodyLimit)
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
