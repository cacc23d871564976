// An HTTP server whose responses each test defines, and a client for it.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { type ClientOptions, createClient, type HttpOptions, http } from './index.ts'

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}
export type Answer = readonly [status: number, body: unknown, headers?: Record<string, string>] | 'break' | 'silence'

/** Closes the server when the test has finished. */
export function closeAfterTest(server: Server): Server {
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return server
}

/** Returns a client for a server that sends these responses in turn and then repeats the last one. */
export async function api(answers: readonly Answer[], options: HttpOptions & Pick<ClientOptions, 'retryFor'> = {}) {
  const seen: Seen[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, url, headers } = request
    seen.push({ method, url, headers, body: 'content-type' in headers ? await json(request) : undefined })
    const next = answers[Math.min(seen.length, answers.length) - 1] ?? 'break'
    if (next === 'break') request.socket.destroy()
    else if (next !== 'silence') {
      const [status, body, more] = next
      response.writeHead(status, { 'content-type': 'application/json', ...more })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
  }
  const server = closeAfterTest(createServer(answer)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { retryFor = '10s', ...httpOptions } = options
  return { seen, url, server, client: createClient({ transport: http(url, 'k', httpOptions), retryFor }) }
}

export const problem = (code: string, status: number, more: object = {}) =>
  [status, { type: `/problems/${code}`, title: code, status, code, ...more }] as const
