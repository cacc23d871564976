// Finds free TCP ports on this machine.
import { createServer } from 'node:net'
import { UserError } from './user-error.mjs'

/** Returns `port` if it is free, or undefined if it is in use. For port 0, returns the port that the system assigns. */
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

export const freePort = (host = '127.0.0.1') => tryPort(0, host)

/** Returns `count` different free ports. */
export async function freePorts(count, host = '127.0.0.1') {
  const listening = await Promise.all(Array.from({ length: count }, () => listenAnywhere(host)))
  return Promise.all(
    listening.map((server) => {
      const { port } = server.address()
      return new Promise((resolve) => server.close(() => resolve(port)))
    }),
  )
}

function listenAnywhere(host) {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port: 0, host, exclusive: true }, () => resolve(server))
  })
}

/**
 * Returns the first free port from `wanted` upwards that is not in `taken`.
 * @param {number} wanted
 * @param {{ host?: string, taken?: Iterable<number> }} [options]
 */
export async function nextFreePort(wanted, { host = '127.0.0.1', taken = [] } = {}) {
  const reserved = new Set(taken)
  for (let port = wanted; port <= 65_535; port++) {
    if (!reserved.has(port) && (await tryPort(port, host)) !== undefined) return port
  }
  throw new UserError(`no free port on ${host} from ${wanted} to 65535`)
}
