// Closes connections whose request body arrives too slowly, so that slow callers cannot hold connections.
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long the headers of a request may take to arrive, and how long a body may take before its rate counts, in seconds. */
export const GRACE_S = 3

const CHECK_MS = 1_000

interface Arriving {
  readonly request: IncomingMessage
  readonly bytesBefore: number
  checks: number
}

/** Returns whether fewer bytes of a body have arrived than the rate requires, which is in bytes per second. */
export function isTooSlow(seconds: number, bytes: number, minRate: number): boolean {
  return bytes < (seconds - GRACE_S) * minRate
}

/**
 * Returns the time after which Node closes the connection of any incomplete request, in ms: that of the headers, the grace period, and
 * the time of the longest body at the minimal rate. {@link closeSlowBodies} closes most of these connections earlier.
 */
export function requestTimeoutMs(longestBody: number, minRate: number): number {
  return (2 * GRACE_S + Math.ceil(longestBody / minRate)) * 1_000
}

/**
 * Reports slow bodies by the event with which Node reports late headers. Its handler responds, and a second later closes a connection
 * that the caller keeps open. Time is counted in checks, because a stall of the event loop delays reading as well. Returns a function
 * that ends the checks.
 */
export function closeSlowBodies(server: Server, minRate: number): () => void {
  const arriving = new Map<Socket, Arriving>()
  server.on('connection', (socket: Socket) => socket.once('close', () => arriving.delete(socket)))
  server.on('request', (request: IncomingMessage) => {
    const { headers, socket } = request
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return
    arriving.set(socket, { request, bytesBefore: socket.bytesRead, checks: 0 })
  })
  const timer = setInterval(() => {
    for (const [socket, body] of arriving) {
      body.checks += 1
      if (body.request.complete) arriving.delete(socket)
      else if (isTooSlow(body.checks * (CHECK_MS / 1_000), socket.bytesRead - body.bytesBefore, minRate)) {
        server.emit('clientError', tooSlow(), socket)
      }
    }
  }, CHECK_MS).unref()
  return () => clearInterval(timer)
}

function tooSlow(): Error {
  return Object.assign(new Error('the body arrives too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
}
