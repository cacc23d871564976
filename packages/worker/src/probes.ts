// Serves the worker's liveness, readiness and metrics over HTTP.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BullpenError, type Log } from '@bullpen/contract'

/** An import of `node:http` reads all of its exports, and thereby also loads the code of `fetch`, which takes 35 ms. */
const { createServer } = process.getBuiltinModule('node:http')

export interface ProbeAnswers {
  /** Returns the reason why the worker is not ready, or undefined if it is ready. */
  notReady(): string | undefined
  exposition(): Promise<{ readonly contentType: string; readonly text: string }>
}

export interface ProbeAddress {
  readonly host: string
  readonly port: number
  /** Where the port was set: `BULLPEN_WORKER_PORT`, `--port` or `config.port`. Undefined if the port is the default. */
  readonly portOrigin: string | undefined
}

export interface Probes {
  readonly url: string
  close(): Promise<void>
}

/**
 * Opens the server and resolves when it is listening. If the default port is already in use, for example by another worker on
 * this machine, the server listens on a free port and logs it.
 *
 * @throws BullpenError `invalid_configuration` if the server can't listen, for example because a configured port is in use.
 */
export async function openProbes(answers: ProbeAnswers, address: ProbeAddress, log: Log): Promise<Probes> {
  const { host, port, portOrigin } = address
  const server = createServer(async (request, response) => {
    const { status, type, text } = await answer(answers, request.method ?? '', request.url ?? '')
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
  })
  const url = (): string => {
    const { port } = server.address() as AddressInfo
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  }
  try {
    await listen(server, host, port)
  } catch (error) {
    if (!isTaken(error) || portOrigin !== undefined) throw cannotListen(address, error)
    await listen(server, host, 0)
    log.warn({ url: url() }, `port ${port} is already in use; probes and metrics listen on a free port`)
  }
  return {
    url: url(),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(answers: ProbeAnswers, method: string, url: string) {
  const plain = (status: number, text: string) => ({ status, type: 'text/plain; charset=utf-8', text: `${text}\n` })
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'method not allowed: use GET')
  switch (url.split('?', 1)[0]) {
    case '/livez':
      return plain(200, 'alive')
    case '/readyz': {
      const why = answers.notReady()
      return why === undefined ? plain(200, 'ready') : plain(503, why)
    }
    case '/metrics':
      try {
        const { contentType, text } = await answers.exposition()
        return { status: 200, type: contentType, text }
      } catch (error) {
        return plain(500, `metrics can't be read: ${String(error)}`)
      }
    default:
      return plain(404, 'not found: use /livez, /readyz or /metrics')
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
}

function cannotListen({ host, port, portOrigin = 'BULLPEN_WORKER_PORT' }: ProbeAddress, cause: unknown): BullpenError {
  const [why, fix] = isTaken(cause)
    ? ['the port is already in use', `set ${portOrigin} to another port, or to 0 for a free one`]
    : [
        cause instanceof Error ? cause.message : String(cause),
        `check host (BULLPEN_WORKER_HOST) and port (${portOrigin})`,
      ]
  const message = `probes and metrics can't listen on ${host}:${port}: ${why}; ${fix}`
  return new BullpenError('invalid_configuration', message, { cause })
}
