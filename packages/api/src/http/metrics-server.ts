// GET /metrics on a port of its own. It needs no key, so that port is for Prometheus alone and is not published.
import { createServer } from 'node:http'
import type { Log } from '@bullpen/contract'

export interface Exposition {
  readonly contentType: string
  readonly text: string
}

export interface MetricsServer {
  /** Resolves with the port that it listens on. */
  listen(host: string, port: number): Promise<number>
  close(): Promise<void>
}

export function createMetricsServer(exposition: () => Promise<Exposition>, log: Log): MetricsServer {
  const server = createServer({ requestTimeout: 3_000, headersTimeout: 3_000 }, (request, response) => {
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    exposition().then(
      ({ contentType, text }) => response.writeHead(200, { 'content-type': contentType }).end(text),
      (err: unknown) => {
        log.error({ err }, 'metrics could not be written')
        response.writeHead(500).end()
      },
    )
  })
  return {
    async listen(host, port) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      server.once('error', reject)
      server.listen(port, host, resolve)
      await promise
      server.off('error', reject)
      const address = server.address()
      return typeof address === 'object' && address !== null ? address.port : port
    },
    async close() {
      if (!server.listening) return
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      server.closeAllConnections()
      await promise
    },
  }
}
