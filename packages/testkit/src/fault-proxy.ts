// A TCP proxy in front of Redis that can stop forwarding while connections stay open, as a network partition does.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FaultProxy {
  /** The URL that clients connect to. */
  readonly url: string
  /** Stops forwarding in both directions, including on connections that are opened later. */
  cut(): void
  /** Resumes forwarding, starting with the data that was held back. */
  mend(): void
  close(): Promise<void>
}

/** Starts a proxy on a free port of 127.0.0.1. `targetUrl` is the URL of a Redis without TLS. */
export async function faultProxy(targetUrl: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(targetUrl)
  const sockets = new Set<Socket>()
  let isForwarding = true

  const forward = (from: Socket, to: Socket): void => {
    sockets.add(from)
    from.on('data', (chunk) => to.write(chunk))
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    if (!isForwarding) from.pause()
  }
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    forward(client, upstream)
    forward(upstream, client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isForwarding = false
      for (const socket of sockets) socket.pause()
    },
    mend() {
      isForwarding = true
      for (const socket of sockets) socket.resume()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
