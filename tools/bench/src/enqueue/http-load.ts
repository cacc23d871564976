// Sends HTTP requests over connections that are kept open. Each connection sends its next request as soon as it has received the
// response to the previous one. The requests are written to the socket as text, because an HTTP client would need as much CPU time
// as the server.
import { connect } from 'node:net'
import { createMeter, type Meter } from '../measuring/meter.ts'
import type { LoadRequest } from './workload.ts'

export interface HttpLoadOptions {
  readonly port: number
  readonly connections: number
  readonly request: LoadRequest
  /** Called if the server closes a connection. */
  readonly onFailed: (error: Error) => void
}

export interface HttpLoad extends Pick<Meter, 'begin' | 'end'> {
  close(): void
}

/** After a response that is not accepted, a connection sends its next request, because a busy server may refuse some. */
export function openHttpLoad({ port, connections, request, onFailed }: HttpLoadOptions): HttpLoad {
  const meter = createMeter()
  let requests = 0
  let isClosed = false

  const sockets = Array.from({ length: connections }, () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
    let received = ''
    let sentAt = 0
    let isFollowUp = false
    const send = (): void => {
      sentAt = performance.now()
      socket.write(request.text(requests++), 'latin1')
    }
    socket.on('connect', send)
    socket.on('data', (chunk) => {
      received += chunk
      if (!isComplete(received)) return
      const response = received
      received = ''
      if (!request.isAccepted(response)) {
        meter.refuse(response.slice(0, MAX_SHOWN))
        isFollowUp = false
        send()
        return
      }
      isFollowUp = !isFollowUp && request.followedBy !== undefined
      if (isFollowUp && request.followedBy !== undefined) {
        socket.write(request.followedBy(response), 'latin1')
        return
      }
      meter.count(sentAt, request.tasks)
      send()
    })
    socket.on('error', onFailed)
    socket.on('close', () => {
      if (!isClosed) onFailed(new Error('the server closed a connection'))
    })
    return socket
  })

  return {
    begin: meter.begin,
    end: meter.end,
    close() {
      isClosed = true
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** How many characters of a refused response are kept. */
const MAX_SHOWN = 2_000

const END_OF_HEAD = '\r\n\r\n'

/** Returns whether the text is a complete response with a Content-Length. The text has one character per byte. */
function isComplete(response: string): boolean {
  const end = response.indexOf(END_OF_HEAD)
  if (end === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(response.slice(0, end))?.[1]
  return response.length >= end + END_OF_HEAD.length + Number(length ?? 0)
}
