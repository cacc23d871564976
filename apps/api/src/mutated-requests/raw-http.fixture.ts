// Sends bytes that may not be valid HTTP, and reads the response.
import { connect } from 'node:net'

/** A request as it is sent. */
export interface WireRequest {
  readonly method: string
  /** The path and the query. */
  readonly target: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** Whether the caller disconnects soon, because the response may take as long as the request asks for, or never come. */
  readonly isLeft: boolean
  /** Whether the server may close the connection without a response. */
  readonly mayClose: boolean
  /** The codes that are documented for the operation, or undefined if the request is for no documented operation. */
  readonly codes: readonly string[] | undefined
}

export interface WireResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const LEAVE_AFTER_MS = 100
const RESPONSE_MS = 15_000
const STREAM = /\r\ncontent-type: text\/event-stream/i

export function bytesOf({ method, target, headers, body }: WireRequest): Buffer {
  const head = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), '', '']
  return Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), body])
}

/** Resolves with the first response, or with undefined if the caller has left or the server has closed the connection. */
export function sendBytes(port: number, request: WireRequest): Promise<WireResponse | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => void socket.write(bytesOf(request)))
    const limit = setTimeout(
      () => {
        socket.destroy()
        if (!request.isLeft) reject(new Error(`no response within ${RESPONSE_MS} ms`))
      },
      request.isLeft ? LEAVE_AFTER_MS : RESPONSE_MS,
    )
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      // A stream of events has no end.
      if (STREAM.test(chunk.toString('latin1'))) socket.destroy()
    })
    // The server resets the connection if it does not read the rest of a request. In that case, the response has already arrived.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(limit)
      resolve(parseResponse(Buffer.concat(chunks).toString('latin1')))
    })
  })
}

/** Returns the first response that is not informational (1xx), or undefined if there is none. */
function parseResponse(text: string): WireResponse | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
  const rest = text.slice(end + 4)
  if (status < 200) return parseResponse(rest)
  const headers: Readonly<Record<string, string>> = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  // If the request has more bytes than it announced, a second response follows.
  const body = rest.slice(0, Number(headers['content-length'] ?? rest.length))
  return { status, headers, body: Buffer.from(body, 'latin1').toString() }
}
