// The worker's own small HTTP server: liveness, readiness and metrics.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BullpenError } from '@bullpen/contract'

export interface ProbeAnswers {
  /** Undefined: ready. Otherwise why not. */
  notReady(): string | undefined
  exposition(): Promise<{ readonly contentType: string; readonly text: string }>
}

export interface Probes {
  readonly url: string
  close(): Promise<void>
}

/** Resolves when it listens. @throws BullpenError `invalid_configuration` when it can't, as when the port is taken. */
export async function openProbes(
  answers: ProbeAnswers,
  { host, port }: { host: string; port: number },
): Promise<Probes> {
  const server = createServer(async (request, response) => {
    const { status, type, text } = await answer(answers, request.method ?? '', request.url ?? '')
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
  })
  await listening(server, host, port)
  const address = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(answers: ProbeAnswers, method: string, url: string) {
  const plain = (status: number, text: string) => ({ status, type: 'text/plain; charset=utf-8', text: `${text}\n` })
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'only GET')
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
        return plain(500, `the metrics can't be read: ${String(error)}`)
      }
    default:
      return plain(404, 'here are /livez, /readyz and /metrics')
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `probes and metrics can't listen on ${host}:${port} (BULLPEN_WORKER_PORT): ${cause.message}`
      reject(new BullpenError('invalid_configuration', message, { cause }))
    })
    server.listen(port, host, () => {
      server.removeAllListeners('error')
      resolve()
    })
  })
}
