// Sends requests with Node's own HTTP client and its connections, which takes a third of the CPU time of `fetch`.
//
// The module is asked for at run time, because browsers and bundlers for them do not have it. Its types are declared here, because the
// client compiles without those of Node.
import type { HttpResponse, Outgoing, Send } from './send.ts'

/** How long connecting may take, in ms, as with `fetch` on Node. */
const CONNECT_MS = 10_000
/** The code of the error if it takes longer. */
export const CONNECT_TIMEOUT = 'CONNECT_TIMEOUT'

interface Emitter {
  on(event: string, listener: (value: never) => void): unknown
}
interface Incoming extends Emitter {
  readonly statusCode?: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  setEncoding(encoding: 'utf8'): void
}
interface Socket extends Emitter {
  readonly connecting: boolean
  readonly encrypted?: boolean
}
interface Request extends Emitter {
  destroy(): void
  end(body?: string): void
}
interface HttpModule {
  request(options: object, onResponse: (response: Incoming) => void): Request
}

/** Node's `process`, as far as it gives access to modules without an import. */
export interface NodeModules {
  getBuiltinModule(name: string): unknown
}

export function nodeSend(node: NodeModules): Send {
  const [http, https] = ['node:http', 'node:https'].map((name) => node.getBuiltinModule(name) as HttpModule)
  return (address, outgoing) => send((address.protocol === 'https:' ? https : http) as HttpModule, address, outgoing)
}

function send(client: HttpModule, address: URL, { method, headers, body, signal }: Outgoing) {
  return new Promise<HttpResponse>((resolve, reject) => {
    if (signal.aborted) throw signal.reason
    // The agent is Node's global one, so that its settings apply: proxies, certificates and how long connections are kept.
    const options = {
      hostname: address.hostname.replace(/^\[|\]$/g, ''),
      port: address.port,
      path: `${address.pathname}${address.search}`,
      method,
      headers: { 'user-agent': 'node', ...headers },
    }
    const request = client.request(options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => settle(() => resolve({ ...head(response), text })))
      response.on('error', fail)
    })
    const settle = (how: () => void): void => {
      signal.removeEventListener('abort', abort)
      how()
    }
    const fail = (error: Error): void => settle(() => reject(error))
    const abort = (): void => {
      fail(signal.reason)
      request.destroy()
    }
    signal.addEventListener('abort', abort)
    request.on('error', fail)
    // Without an error if the response is one that Node does not pass on, such as 101.
    request.on('close', () => fail(new Error('the connection was closed')))
    request.on('socket', (socket: Socket) => {
      if (socket.connecting) limitConnecting(socket, fail, request)
    })
    request.end(body)
  })
}

function limitConnecting(socket: Socket, fail: (error: Error) => void, request: Request): void {
  const timer = setTimeout(() => {
    const error = new Error(`no connection within ${CONNECT_MS} ms`)
    fail(Object.assign(error, { code: CONNECT_TIMEOUT }))
    request.destroy()
  }, CONNECT_MS)
  const stop = (): void => clearTimeout(timer)
  socket.on(socket.encrypted ? 'secureConnect' : 'connect', stop)
  socket.on('close', stop)
}

function head({ statusCode = 0, headers }: Incoming): Omit<HttpResponse, 'text'> {
  return {
    status: statusCode,
    ok: statusCode >= 200 && statusCode < 300,
    headers: {
      get(name) {
        const value = headers[name]
        return value === undefined ? null : String(value)
      },
    },
  }
}
