// Serves GET /metrics on a separate port. The route requires no key, so this port is only for Prometheus and must not be published.
import type { Log } from '@bullpen/contract'

/** An import of `node:http` reads all of its exports, and thereby also loads the code of `fetch`, which takes 35 ms. */
const { createServer } = process.getBuiltinModule('node:http')

export interface Exposition {
  readonly contentType: string
  readonly text: string
}

export interface MetricsServer {
  /** Starts listening and resolves with the port. */
  listen(host: string, port: number): Promise<number>
  close(): Promise<void>
}

export function createMetricsServer(exposition: () => Promise<Exposition>, log: Log): MetricsServer {
  const server = createServer({ requestTimeout: 3_000, headersTimeout: 3_000 }, (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    // Node does not send the body of a response to HEAD.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end()
      return
    }
    exposition().then(
      ({ contentType, text }) => response.writeHead(200, { 'content-type': contentType }).end(text),
      (err: unknown) => {
        log.error({ err }, 'cannot render the metrics')
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
