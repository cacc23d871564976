// Responds to requests that do not reach a handler, and to errors that handlers throw.
import type { Socket } from 'node:net'
import { BullpenError, type ErrorCode, type Log } from '@bullpen/contract'
import { ERRORS } from '@bullpen/contract/internal'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Access } from '../../auth/access.ts'
import { routeOf } from '../access-log.ts'
import type { Route } from '../routes/route.ts'
import { problemOf, sendProblem, toBullpenError } from './problem.ts'

/** See `createServer` in ../metrics-server.ts. */
const { maxHeaderSize, METHODS, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http')

export function answerErrors(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((thrown, request, reply) => {
    const error = toBullpenError(thrown, request.routeOptions.bodyLimit)
    logUnexpected(log, request, error)
    return sendProblem(request, reply, error)
  })
  app.setNotFoundHandler((request, reply) => sendProblem(request, reply, routeNotFound(request)))
}

/** Logs an error that no caller can cause. Its response does not contain the message. */
export function logUnexpected(log: Log, request: FastifyRequest, error: BullpenError): void {
  if (ERRORS[error.code].status !== 500) return
  log.error({ err: error.cause ?? error, requestId: request.id, route: routeOf(request) }, 'request failed')
}

export function routeNotFound(request: FastifyRequest): BullpenError {
  const path = pathOf(request)
  const hint = path.startsWith('/v1/v1/')
    ? "; the API's URL must not end in /v1"
    : endsInSlash(request)
      ? `; paths do not end in a slash: use ${path.replace(/\/+$/, '')}`
      : ''
  return new BullpenError(
    'route_not_found',
    `route ${request.method} ${path} not found; /openapi.json lists all routes${hint}`,
  )
}

/** Returns whether the path ends in a slash, so that the router would take its last parameter for an empty one. */
export function endsInSlash({ url }: FastifyRequest): boolean {
  const query = url.indexOf('?')
  return url.length > 1 && url.at(query === -1 ? -1 : query - 1) === '/'
}

/** Returns the path without the query, which may contain a key. */
function pathOf(request: FastifyRequest): string {
  return (request.url.split('?')[0] ?? '').slice(0, 200)
}

/**
 * Answers OPTIONS with the methods of a path, and every other method that Node can read but the path does not accept with 405. Without
 * this, fastify would return 404.
 */
export function refuseOtherMethods(
  app: FastifyInstance,
  table: readonly Pick<Route, 'method' | 'path' | 'access'>[],
): void {
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  for (const [url, rows] of Map.groupBy(table, ({ path }) => path)) {
    const accepted: string[] = rows.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    const allowed = [...accepted, 'OPTIONS']
    const access: Access = rows.some((row) => row.access === 'open') ? 'open' : 'browser'
    app.route({
      method: METHODS.filter((method) => !accepted.includes(method)),
      url,
      config: { access },
      onRequest: async (request, reply) => {
        reply.header('allow', allowed.join(', '))
        if (request.method === 'OPTIONS') return reply.code(204).send()
        const detail = `this path accepts ${allowed.join(', ')}, not ${request.method}`
        return sendProblem(request, reply, new BullpenError('method_not_allowed', detail))
      },
      handler: () => {},
    })
  }
}

/**
 * Responds to requests that Node would reject without a body, or accept although it cannot read them. A request of a version other than
 * HTTP/1.0 and HTTP/1.1 is rejected with 505; a request without exactly one Host header with 400, as RFC 9112 requires; and a request with
 * a transfer coding other than `chunked` with 501, because Node would pass its body on without decoding it. An expectation other than
 * 100-continue is ignored, as RFC 9110 permits. CONNECT is answered like other methods that a path does not accept, although Node would
 * close its connection without a response. `OPTIONS *` asks for the methods of the whole server.
 */
export function answerUnusualHttp(app: FastifyInstance): void {
  app.server.on('request', ({ socket }, response) => latest.set(socket, response))
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (request, socket) => {
    // What follows such a request would no longer be HTTP.
    const response = new ServerResponse(request).on('finish', () => socket.end())
    response.shouldKeepAlive = false
    response.assignSocket(request.socket)
    app.server.emit('request', request, response)
  })
  app.addHook('onRequest', (request, reply, done) => {
    const refusal = refusalOf(request)
    if (refusal !== undefined) sendProblem(request, reply, refusal)
    else if (request.method === 'OPTIONS' && request.raw.url === '*')
      reply.code(204).header('allow', 'GET, HEAD, POST, DELETE, OPTIONS').send()
    else done()
  })
}

/** Returns the error for a request that must be rejected. Node drops repeated Host headers from `headers`, but not from `rawHeaders`. */
function refusalOf({ headers, raw }: FastifyRequest): BullpenError | undefined {
  if (raw.httpVersionMajor !== 1) return new BullpenError('unsupported_http_version', HTTP_VERSIONS)
  const hosts = raw.rawHeaders.filter((text, i) => i % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host')
  if (hosts.length > 1) return wrongHeader('Host', 'sent more than once; send it once')
  if (headers.host === undefined && raw.httpVersion === '1.1') {
    return wrongHeader('Host', 'missing; HTTP/1.1 requires this header')
  }
  const { 'transfer-encoding': coding = 'chunked' } = headers
  if (coding.toLowerCase() === 'chunked') return undefined
  const message = `expected chunked alone, got '${coding}'; send the body without another coding`
  return wrongHeader('Transfer-Encoding', message, 'unsupported_transfer_coding')
}

const HTTP_VERSIONS = 'the request uses an unsupported version of HTTP; expected HTTP/1.1 or HTTP/1.0'

function wrongHeader(header: string, message: string, code: ErrorCode = 'invalid_request'): BullpenError {
  return new BullpenError(code, `${header}: ${message}`, { errors: [{ header, message }] })
}

/** A `..` segment of a path. Each of its characters, and the slashes around it, may be percent-encoded, once or several times. */
const PARENT = /(?:^|[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){2}(?:$|[/\\]|%(?:25)*(?:2f|5c))/i

/** Rejects each path with a `..` segment with 403, even if no route serves files below that path. */
export function refuseParents(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (!PARENT.test(request.url.split('?', 1)[0] ?? '')) return done()
    const detail = "the path has a '..' segment, which leads out of a directory; send a path without such segments"
    sendProblem(request, reply, new BullpenError('forbidden', detail))
  })
}

/** The response to the latest request of each connection. */
const latest = new WeakMap<Socket, InstanceType<typeof ServerResponse>>()

/**
 * Responds to bytes that are not HTTP, such as a URL with a space, and to a request that has not arrived in time. Hooks are not called for
 * these, because they never become a request. If the API has already answered the request, for example with 404 before the body arrived, it
 * only closes the connection, because the caller would take a second response for that of its next request. If the bytes follow a request
 * whose response is not complete, the caller would take this response for that one, or for a part of it: a response that has begun, such
 * as a stream of events, is broken off, and another one is sent before the connection closes. Returns the status of the response, or
 * undefined if none was sent.
 */
export function answerBrokenHttp(error: BrokenHttp, socket: Socket): number | undefined {
  if (!socket.writable) {
    socket.destroy()
    return undefined
  }
  const response = latest.get(socket)
  if (response?.req.complete && !response.writableFinished) {
    if (response.headersSent) socket.destroy()
    // Node closes the connection after this response.
    else response.shouldKeepAlive = false
    return undefined
  }
  if (response?.headersSent && !response.req.complete) {
    socket.end()
    return undefined
  }
  // Without a complete request, there is no id.
  const { requestId: _, ...problem } = problemOf(new BullpenError(...unreadable(error)), '')
  const body = JSON.stringify(problem)
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
  return problem.status
}

/** What Node's parser or server reports, and how many of the bytes that it received last the parser has read. */
interface BrokenHttp extends Error {
  readonly code?: string
  readonly bytesParsed?: number
  /** A Buffer, which fastify's type does not say. */
  readonly rawPacket?: unknown
}

const LINE_FEED = 0x0a

/** The codes are those of Node's parser and server. */
function unreadable({ code, bytesParsed = 0, rawPacket }: BrokenHttp): [ErrorCode, string] {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return ['request_timeout', 'the request did not arrive completely in time; send it again']
    case 'HPE_HEADER_OVERFLOW':
      return ['headers_too_large', `the request line and the headers have more than ${maxHeaderSize} bytes`]
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return ['payload_too_large', 'the chunk extensions of the body are too large; send chunks without extensions']
    case 'HPE_INVALID_VERSION':
      // The parser takes a line feed that follows the version for a part of the version.
      if (Buffer.isBuffer(rawPacket) && rawPacket[bytesParsed - 1] === LINE_FEED) {
        return ['invalid_request', 'malformed HTTP request: the request line ends in LF alone; end each line in CRLF']
      }
      return ['unsupported_http_version', HTTP_VERSIONS]
    case 'HPE_PAUSED_H2_UPGRADE':
      return ['unsupported_http_version', HTTP_VERSIONS]
    default:
      return ['invalid_request', 'incomplete or malformed HTTP request']
  }
}
