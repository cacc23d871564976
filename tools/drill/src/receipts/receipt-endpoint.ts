// Implements the receipts endpoint, which is outside the system under test. The endpoint deduplicates by idempotency key, fails
// on request, and records deliveries.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** A request to the endpoint. Times are Unix times in ms. */
export interface Delivery {
  readonly orderId: string
  readonly key: string
  /** The worker that delivered the receipt, according to the URL. */
  readonly by: string
  readonly at: number
  /** `accepted` means a new receipt. `duplicate` means that a receipt with this key had already been accepted. */
  readonly as: 'accepted' | 'duplicate' | 'failed'
  /** The time at which the worker closed the connection before it had a response. */
  cutAt: number | undefined
  answeredAt: number | undefined
}

export interface ReceiptEndpoint {
  /** Returns the URL for the worker `by`. */
  url(by: string): string
  /**
   * Resolves when the worker has the given number of open deliveries. @throws Error if it does not within a minute, because a restart would
   * then interrupt nothing.
   */
  holds(by: string, many: number): Promise<void>
  readonly deliveries: readonly Delivery[]
  close(): Promise<void>
}

const LOOPBACK = '127.0.0.1'
const POLL_MS = 5
const OPEN_WITHIN_MS = 60_000

export interface EndpointOptions {
  /** The time until the response. The receipt is accepted or rejected before that. */
  readonly answerMs: number | ((orderId: string) => number)
  /** How many deliveries of an order fail before one is accepted. */
  readonly failures: (orderId: string) => number
  /**
   * The host name under which workers reach this machine. Defaults to 127.0.0.1. With any other value, the endpoint listens on
   * all addresses.
   */
  readonly host?: string
}

export async function openReceiptEndpoint(options: EndpointOptions): Promise<ReceiptEndpoint> {
  const { answerMs, failures, host = LOOPBACK } = options
  const deliveries: Delivery[] = []
  const accepted = new Set<string>()

  const judge = (orderId: string, key: string): Delivery['as'] => {
    if (accepted.has(key)) return 'duplicate'
    const failed = deliveries.filter((each) => each.orderId === orderId && each.as === 'failed').length
    if (failed < failures(orderId)) return 'failed'
    accepted.add(key)
    return 'accepted'
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { orderId } = (await json(request)) as { readonly orderId: string }
    const key = String(request.headers['idempotency-key'])
    const by = new URL(request.url ?? '', 'http://endpoint').searchParams.get('by') ?? ''
    const as = judge(orderId, key)
    const delivery: Delivery = { orderId, key, by, at: Date.now(), as, cutAt: undefined, answeredAt: undefined }
    deliveries.push(delivery)
    const timer = setTimeout(
      () => {
        delivery.answeredAt = Date.now()
        response.writeHead(as === 'failed' ? 503 : 202).end()
      },
      typeof answerMs === 'number' ? answerMs : answerMs(orderId),
    )
    response.once('close', () => {
      clearTimeout(timer)
      if (delivery.answeredAt === undefined) delivery.cutAt = Date.now()
    })
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, host === LOOPBACK ? LOOPBACK : '0.0.0.0', resolve))
  const { port } = server.address() as AddressInfo
  const isOpen = ({ answeredAt, cutAt }: Delivery): boolean => answeredAt === undefined && cutAt === undefined
  return {
    url: (by) => `http://${host}:${port}/receipts?by=${by}`,
    async holds(by, many) {
      const deadline = performance.now() + OPEN_WITHIN_MS
      while (performance.now() < deadline) {
        if (deliveries.filter((each) => each.by === by && isOpen(each)).length >= many) return
        await sleep(POLL_MS)
      }
      throw new Error(`worker ${by} did not have ${many} open deliveries within ${OPEN_WITHIN_MS} ms`)
    },
    deliveries,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
