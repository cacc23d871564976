// Builds the HTTP server with its routes, access control, problems, the reference and the board. It does not open any
// connections.

import type { TaskId, TraceContext } from '@bullpen/contract'
import { DEFAULT_KEPT_EVENTS, readTraceContext } from '@bullpen/contract/internal'
import type { ProducerTracing } from '@bullpen/engine'
import { createEventFeeds, type EventFeeds } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { requireAccess } from '../auth/access.ts'
import type { Keyring } from '../auth/keyring.ts'
import { addLogin } from '../auth/log-in.ts'
import { addBoard } from '../board/board.ts'
import { boardButtons } from '../board/board-buttons.ts'
import { loadBullBoard } from '../board/bull-board.ts'
import type { BoardQueue, BoardReads } from '../board/task-queue-adapter.ts'
import { openApiDocument } from '../docs/openapi.ts'
import { addReference } from '../docs/reference.ts'
import { logRequests, logUnreadable, NONE, type Observers } from './access-log.ts'
import type { ApiContext } from './context.ts'
import { allowOrigins } from './cors.ts'
import { createEventStreams, type EventStreamOptions } from './event-stream.ts'
import { addFrontPage } from './front-page.ts'
import { acceptOnlyJson } from './json-body.ts'
import type { OpenStreams } from './open-streams.ts'
import {
  answerBrokenHttp,
  answerErrors,
  answerUnusualHttp,
  endsInSlash,
  refuseOtherMethods,
  refuseParents,
  routeNotFound,
} from './problems/error-responses.ts'
import { sendProblem, toBullpenError } from './problems/problem.ts'
import { addProblemPages } from './problems/problem-pages.ts'
import { callersId } from './request-id.ts'
import type { Route } from './routes/route.ts'
import { routeTable } from './routes/route-table.ts'
import { createSerializer, createValidator } from './schemas.ts'
import { DATA_HEADERS } from './security-headers.ts'
import { closeSlowBodies, GRACE_S, requestTimeoutMs } from './slow-bodies.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of the task that this request stores. It is set before Redis is called. */
    taskId: TaskId | undefined
    /** The trace that the tasks of this request belong to. */
    traceContext: TraceContext | undefined
    /** Whether the request has stored something, although it may fail afterwards. */
    hadEffect: boolean
  }
}

export interface ServerOptions extends Omit<ApiContext, 'hasBoard' | 'feeds' | 'eventStreams'>, Observers {
  readonly keyring: Keyring
  readonly version: string
  /** The maximum size of a body, in bytes. */
  readonly bodyLimit: number
  /** The rate at which a body must arrive, in bytes per second. */
  readonly minBodyRate: number
  /** The origins whose pages may call the API from scripts, such as `https://shop.example.com`. */
  readonly corsOrigins: readonly string[]
  /** True if browsers must send the session cookie only over https. */
  readonly secureCookie: boolean
  /** The queues that Bull Board shows. If there are none, there is no board. */
  readonly boardQueues: readonly BoardQueue[]
  readonly boardJobs: BoardReads['boardJobs']
  /** Counts the streams of events. */
  readonly streams: OpenStreams
  /** When readers of events receive heartbeats, and when slow ones are disconnected. Tests set this. */
  readonly eventTimes?: Pick<EventStreamOptions, 'heartbeatMs' | 'slowReaderMs'>
  /** Names the trace that a request belongs to. By default, that of its `traceparent`. */
  readonly tracing?: Pick<ProducerTracing, 'current'> | undefined
  /** Whether the board's buttons work. Otherwise, the board is read-only. */
  readonly allowBoardChanges: boolean
  /** The address of the dashboards, to which the board links. */
  readonly grafanaUrl?: string | undefined
}

/** The pages whose other methods are refused as well. Each has its own module. */
const PAGES = [
  { method: 'GET', path: '/', access: 'open' },
  { method: 'GET', path: '/openapi.json', access: 'browser' },
  { method: 'GET', path: '/board/login', access: 'open' },
  { method: 'POST', path: '/board/login', access: 'open' },
  { method: 'GET', path: '/problems/:code', access: 'open' },
] as const
/** An id consists of a queue name and at most 27 more characters. Anything longer matches no route. */
const MAX_PARAMETER_LENGTH = 128

export async function buildServer(options: ServerOptions): Promise<FastifyInstance> {
  const { catalogue, keyring, now, version } = options
  const app = fastify({
    bodyLimit: options.bodyLimit,
    requestTimeout: requestTimeoutMs(Math.max(options.bodyLimit, options.bulkBodyLimit), options.minBodyRate),
    // Node checks its timeouts every second, so a slow request can keep its connection for up to 1 s longer.
    http: { headersTimeout: GRACE_S * 1_000, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    // Requests that arrive while the API is draining are still handled, because fastify's own 503 is not problem+json.
    return503OnClosing: false,
    genReqId: (request) => callersId(request.headers) ?? hex(options.randomBytes(16)),
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
    // Hooks do not run for an unreadable URL, so the common headers are set and the request is counted here.
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply)
      logUnreadable(request, reply, options)
      sendProblem(request, reply, toBullpenError(error, options.bodyLimit))
    },
    clientErrorHandler: (error, socket) => {
      const status = answerBrokenHttp(error, socket)
      if (status !== undefined) options.observe({ method: NONE, route: NONE, status })
    },
  })
  app.decorateRequest('taskId', undefined)
  app.decorateRequest('traceContext', undefined)
  app.decorateRequest('hadEffect', false)
  app.decorateRequest('keyFingerprint', undefined)
  app.decorateRequest('apiKeyName', undefined)
  app.decorateRequest('requesterName', undefined)
  app.setValidatorCompiler(createValidator(catalogue))
  app.setSerializerCompiler(createSerializer)
  acceptOnlyJson(app)
  answerErrors(app, options.log)
  const { tracing } = options
  app.addHook('onRequest', (request, reply, done) => {
    setCommonHeaders(request, reply)
    request.traceContext = tracing?.current() ?? readTraceContext(request.headers)
    done()
  })
  logRequests(app, options)
  app.addHook('onSend', (_request, reply, payload, done) => {
    // A connection that is kept alive for another request would delay the shutdown of the server.
    if (options.closing.aborted) reply.header('connection', 'close')
    done(null, payload)
  })
  answerUnusualHttp(app)
  app.addHook('onListen', async () => {
    app.server.once('close', closeSlowBodies(app.server, options.minBodyRate))
  })
  if (options.corsOrigins.length > 0) app.addHook('onRequest', allowOrigins(options.corsOrigins))
  app.addHook('onRequest', requireAccess(keyring, now))
  refuseParents(app)
  app.addHook('onRequest', (request, reply, done) => {
    // An unknown route is rejected before the body is read, so that the body costs nothing.
    if (request.is404 || (request.url.startsWith('/v1/') && endsInSlash(request)))
      sendProblem(request, reply, routeNotFound(request))
    else done()
  })

  const showsBoard = options.boardQueues.length > 0
  const bullBoard = showsBoard ? await loadBullBoard() : undefined
  const feeds = openFeeds(options)
  app.addHook('onClose', () => feeds.close())
  const { log, closing, streams, eventTimes } = options
  const eventStreams = createEventStreams({ log, closing, streams, ...eventTimes })
  const context = { ...options, hasBoard: bullBoard !== undefined, feeds, eventStreams }
  const routes = routeTable(context)
  for (const row of routes) addRoute(app, row)
  refuseOtherMethods(app, [...routes, ...PAGES])
  addProblemPages(app)
  addFrontPage(app, { showsBoard })
  await addLogin(app, { keyring, now, secure: options.secureCookie })
  await addReference(app, () => openApiDocument(catalogue, routes, version))
  if (showsBoard) {
    const { broker, boardQueues: queues, boardJobs, allowBoardChanges, grafanaUrl } = options
    const definition = (task: string) => (catalogue.has(task) ? catalogue.get(task) : undefined)
    const { find, waitsFor, counts, countDead } = broker
    const reads = { definition, find, waitsFor, counts, countDead, boardJobs }
    const buttons = allowBoardChanges ? boardButtons(context, queues) : undefined
    await addBoard(app, bullBoard, { queues, reads, log, buttons, grafanaUrl })
  }
  return app
}

function openFeeds({ broker, catalogue }: Pick<ServerOptions, 'broker' | 'catalogue'>): EventFeeds {
  return createEventFeeds({
    stream: (queue) => broker.events(queue),
    limit(queue) {
      const { events } = catalogue.queue(queue)
      return events === false ? DEFAULT_KEPT_EVENTS.count : events.count
    },
    after: systemClock.after,
  })
}

function addRoute(app: FastifyInstance, row: Route): void {
  const body = row.checkedBody ?? row.body
  const responses = Object.entries(row.responses).map(([status, { schema }]) => [status, schema] as const)
  app.route({
    method: row.method,
    url: row.path,
    config: { access: row.access },
    ...(row.bodyLimit === undefined ? {} : { bodyLimit: row.bodyLimit }),
    schema: {
      ...(row.params === undefined ? {} : { params: row.params }),
      ...(row.query === undefined ? {} : { querystring: row.query }),
      ...(body === undefined ? {} : { body: row.bodyRequired === false ? body.nullish() : body }),
      response: Object.fromEntries(responses),
    },
    handler: (request, reply) =>
      row.handle({ params: request.params, query: request.query, body: request.body, request, reply }),
  })
}

/** Buffer.from copies an array unless it is given the array's memory. */
function hex({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex')
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers(DATA_HEADERS).header('x-request-id', request.id)
}
