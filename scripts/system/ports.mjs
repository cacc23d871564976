// Finds free TCP ports on this machine.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { UserError } from './user-error.mjs'

/**
 * The range of the ports that are returned, whose end is not included. Linux and macOS take the local ports of outgoing connections
 * from above it. A port that the system assigned could therefore become the local port of another connection before it is used.
 */
const PORTS = { from: 20_000, to: 32_768 }

/** How many ports are tried before the last error is thrown. */
const MAX_ATTEMPTS = 100

export async function freePort(host = '127.0.0.1') {
  const [port] = await freePorts(1, host)
  return port
}

/** Returns `count` different free ports. */
export async function freePorts(count, host = '127.0.0.1') {
  // All of them are held until the last one has been found, so that they differ.
  const held = await Promise.all(Array.from({ length: count }, () => holdPort(host)))
  return Promise.all(
    held.map((server) => {
      const { port } = server.address()
      return new Promise((resolve) => server.close(() => resolve(port)))
    }),
  )
}

async function holdPort(host) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await listenOn(randomInt(PORTS.from, PORTS.to), host)
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error
    }
  }
}

function listenOn(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port, host, exclusive: true }, () => resolve(server))
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
    if (!reserved.has(port) && (await isFree(port, host))) return port
  }
  throw new UserError(`no free port on ${host} from ${wanted} to 65535`)
}

async function isFree(port, host) {
  try {
    const server = await listenOn(port, host)
    await new Promise((resolve) => server.close(resolve))
    return true
  } catch (error) {
    if (error.code === 'EADDRINUSE') return false
    throw error
  }
}
