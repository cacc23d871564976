// A TCP proxy in front of Redis that simulates network faults. It can stop forwarding while connections stay open, as in a
// network partition, silence the connections that are open, as a firewall that forgets them, or close the connections so that data
// in transit is lost.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FaultProxy {
  /** The URL that clients connect to. */
  readonly url: string
  /** Stops forwarding in both directions, including on connections that are opened later. */
  cut(): void
  /**
   * Stops forwarding only what the server sends. The server still receives and executes commands, including those that were held back,
   * but its replies do not arrive.
   */
  cutAnswers(): void
  /**
   * Forwards nothing on the open connections any more, not even that an end has closed them, and loses what was under way. New connections
   * work. Returns how many connections became silent.
   */
  silence(): number
  /** Connects new clients to the Redis at this URL. Open connections keep their server. */
  moveTo(targetUrl: string): void
  /** Forwards everything this many ms later from now on, in each direction, as a slow network or server would. 0 ends the delay. */
  delay(ms: number): void
  /** Resumes forwarding, starting with the data that was held back. */
  mend(): void
  /** Closes every connection, so that the data that was held back is lost, and resumes forwarding on new connections. */
  reset(): void
  close(): Promise<void>
}

/** Starts a proxy on a free port of 127.0.0.1. `targetUrl` is the URL of a Redis without TLS. */
export async function faultProxy(targetUrl: string): Promise<FaultProxy> {
  let target = new URL(targetUrl)
  const clients = new Set<Socket>()
  const servers = new Set<Socket>()
  const held = new Set<ReadonlySet<Socket>>()
  /** The sockets of both ends of silent connections. */
  const silent = new Set<Socket>()
  let delayMs = 0

  const forward = (from: Socket, to: Socket, sockets: Set<Socket>): void => {
    sockets.add(from)
    const late: { readonly chunk: Buffer; readonly at: number }[] = []
    const forwardDue = (): void => {
      for (let [next] = late; next !== undefined; [next] = late) {
        const leftMs = next.at - performance.now()
        if (leftMs > 0) return void setTimeout(forwardDue, Math.ceil(leftMs))
        if (!silent.has(from)) to.write(next.chunk)
        late.shift()
      }
    }
    from.on('data', (chunk: Buffer) => {
      if (silent.has(from)) return
      late.push({ chunk, at: performance.now() + delayMs })
      if (late.length === 1) forwardDue()
    })
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      if (!silent.delete(from)) to.destroy()
      // If the connection was silent, a part of what was under way would follow what was lost, and Redis would read on after the gap.
      late.length = 0
    })
    if (held.has(sockets)) from.pause()
  }
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    forward(client, upstream, clients)
    forward(upstream, client, servers)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const hold = (sockets: ReadonlySet<Socket>): void => {
    held.add(sockets)
    for (const socket of sockets) socket.pause()
  }
  const release = (sockets: ReadonlySet<Socket>): void => {
    held.delete(sockets)
    for (const socket of sockets) socket.resume()
  }
  const closeAll = (): void => {
    for (const socket of [...clients, ...servers]) socket.destroy()
  }

  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      hold(clients)
      hold(servers)
    },
    cutAnswers() {
      hold(servers)
      release(clients)
    },
    silence() {
      const silenced = [...clients].filter((client) => !silent.has(client)).length
      // A socket that is paused would not notice that its end has closed it.
      for (const socket of [...clients, ...servers]) silent.add(socket.resume())
      return silenced
    },
    moveTo(url) {
      target = new URL(url)
    },
    delay(ms) {
      delayMs = ms
    },
    mend() {
      release(clients)
      release(servers)
    },
    reset() {
      held.clear()
      closeAll()
    },
    async close() {
      closeAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
