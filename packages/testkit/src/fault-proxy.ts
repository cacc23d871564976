// A TCP proxy in front of Redis that can stop forwarding: connections stay open, and nothing comes through.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FaultProxy {
  /** Where clients find it. */
  readonly url: string
  /** From now on nothing is forwarded either way, also on connections that are opened meanwhile. */
  cut(): void
  /** What was held back goes on. */
  mend(): void
  close(): Promise<void>
}

/** Listens on a free port of 127.0.0.1. `targetUrl`: of a Redis without TLS. */
export async function faultProxy(targetUrl: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(targetUrl)
  const sockets = new Set<Socket>()
  let through = true

  const forward = (from: Socket, to: Socket): void => {
    sockets.add(from)
    from.on('data', (chunk) => to.write(chunk))
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    if (!through) from.pause()
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
      through = false
      for (const socket of sockets) socket.pause()
    },
    mend() {
      through = true
      for (const socket of sockets) socket.resume()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
