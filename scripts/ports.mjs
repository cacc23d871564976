// Finds TCP ports on this machine that are free right now.
import { createServer } from 'node:net'
import { UserError } from './user-error.mjs'

/** The port that the system hands out (port 0), or `port` itself when nobody listens there; undefined when it is taken. */
function tryPort(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)))
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(address.port))
    })
  })
}

/** Any free port. */
export const freePort = (host = '127.0.0.1') => tryPort(0, host)

/**
 * The first free port from `wanted` upwards, leaving out those in `taken`.
 * @param {number} wanted
 * @param {{ host?: string, taken?: Iterable<number> }} [options]
 */
export async function nextFreePort(wanted, { host = '127.0.0.1', taken = [] } = {}) {
  const reserved = new Set(taken)
  for (let port = wanted; port <= 65_535; port++) {
    if (!reserved.has(port) && (await tryPort(port, host)) !== undefined) return port
  }
  throw new UserError(`no free port from ${wanted} up on ${host}`)
}
