// Implements a provider that tasks call over HTTP. It is outside the system under test, counts its calls, and can be down.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How long the provider takes to respond, in ms. */
const RESPONSE_MS = 20

export interface Provider {
  readonly url: string
  /** Every call that has arrived: when, in ms of the monotonic clock, and whether the provider was down. */
  readonly calls: readonly { readonly at: number; readonly whileDown: boolean }[]
  /** From now on, calls succeed. */
  recover(): void
  close(): Promise<void>
}

/** Opens a provider that responds to every call with 503 until it recovers. */
export async function openProvider(): Promise<Provider> {
  const calls: { readonly at: number; readonly whileDown: boolean }[] = []
  let isDown = true
  const server = createServer((request, response) => {
    request.resume()
    const whileDown = isDown
    calls.push({ at: performance.now(), whileDown })
    setTimeout(() => response.writeHead(whileDown ? 503 : 204).end(), RESPONSE_MS)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    calls,
    recover() {
      isDown = false
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Calls a provider. @throws Error with the response's `status` unless the call has succeeded. */
export async function callProvider(url: string, signal?: AbortSignal): Promise<void> {
  const response = await fetch(url, { method: 'POST', signal: signal ?? null })
  await response.arrayBuffer()
  if (!response.ok) throw Object.assign(new Error('the provider is down'), { status: response.status })
}
