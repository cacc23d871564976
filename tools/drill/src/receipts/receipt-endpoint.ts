// The endpoint that receipts are delivered to, outside the system under test: it dedupes by key, fails as told, and keeps a ledger.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** One request. Times are unix times in ms. */
export interface Delivery {
  readonly orderId: string
  readonly key: string
  /** Who delivered, as he was told to say. */
  readonly by: string
  readonly at: number
  /** `taken`: the receipt is delivered. `known`: that key's receipt was taken before, and is not delivered again. */
  readonly as: 'taken' | 'known' | 'failed'
  /** When whoever delivered went away unanswered. */
  cutAt: number | undefined
  answeredAt: number | undefined
}

export interface ReceiptEndpoint {
  /** Where `by` is to deliver. */
  url(by: string): string
  /** Resolves when he has so many deliveries that are not answered yet; also after 5 s. */
  holds(by: string, many: number): Promise<void>
  readonly deliveries: readonly Delivery[]
  close(): Promise<void>
}

const LOOPBACK = '127.0.0.1'
const LOOK_MS = 5
const HOLDS_WITHIN_MS = 5_000

export interface EndpointOptions {
  /** What it makes of a request is decided before. */
  readonly answerMs: number | ((orderId: string) => number)
  /** How often an order's deliveries fail first. */
  readonly failures: (orderId: string) => number
  /** By which name those who deliver reach this machine; other names than its own need every address. Default: 127.0.0.1. */
  readonly host?: string
}

export async function receiptEndpoint(options: EndpointOptions): Promise<ReceiptEndpoint> {
  const { answerMs, failures, host = LOOPBACK } = options
  const deliveries: Delivery[] = []
  const taken = new Set<string>()

  const judge = (orderId: string, key: string): Delivery['as'] => {
    if (taken.has(key)) return 'known'
    const failed = deliveries.filter((each) => each.orderId === orderId && each.as === 'failed').length
    if (failed < failures(orderId)) return 'failed'
    taken.add(key)
    return 'taken'
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
      const deadline = performance.now() + HOLDS_WITHIN_MS
      while (performance.now() < deadline) {
        if (deliveries.filter((each) => each.by === by && isOpen(each)).length >= many) return
        await sleep(LOOK_MS)
      }
    },
    deliveries,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
