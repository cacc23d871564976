// Runs a mixed load on the example platform: steady traffic with some failures, a paused queue, a rolling restart, and a burst.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import { mathFactorial, receiptSend } from '@bullpen/tasks'

export interface LoadedPlatform {
  readonly client: Client
  /** Drains a worker and starts it again. */
  restart(worker: 'worker-1' | 'worker-2'): Promise<void>
}

const TICK_MS = 100
const RECEIPTS_PER_TICK = 2
const FACTORIALS_PER_TICK = 3
/** The provider refuses every receipt to an address that begins with `fail`. */
const FAILS_EVERY = 25
const BURST = 8_000
const BULK = 1_000

/** The events during the load, with the times at which they begin, in seconds. */
const EVENTS: readonly (readonly [atS: number, (platform: LoadedPlatform) => Promise<unknown>])[] = [
  [50, ({ client }) => client.command({ action: 'pause', queue: 'mail' })],
  [80, ({ client }) => client.command({ action: 'resume', queue: 'mail' })],
  [
    110,
    async ({ restart }) => {
      await restart('worker-1')
      await restart('worker-2')
    },
  ],
  [150, burst],
]

export const LOAD_SECONDS = 200

/** Resolves when the load is over. */
export async function runMixedLoad(platform: LoadedPlatform): Promise<void> {
  const startedAt = performance.now()
  const elapsedS = (): number => (performance.now() - startedAt) / 1_000
  const events = EVENTS.map(async ([atS, run]) => {
    await sleep(1_000 * atS)
    await run(platform)
  })
  const sent: Promise<unknown>[] = []
  for (let tick = 0; elapsedS() < LOAD_SECONDS; tick++) {
    for (let i = 0; i < RECEIPTS_PER_TICK; i++) sent.push(sendReceipt(platform.client, tick * RECEIPTS_PER_TICK + i))
    for (let i = 0; i < FACTORIALS_PER_TICK; i++) sent.push(platform.client.enqueue(mathFactorial, { n: 100 * i }))
    await sleep(Math.max(0, startedAt + (tick + 1) * TICK_MS - performance.now()))
  }
  await Promise.all([...events, ...sent])
}

function sendReceipt(client: Client, n: number): Promise<unknown> {
  const to = n % FAILS_EVERY === 0 ? 'fail@example.org' : 'ann@example.org'
  return client.enqueue(receiptSend, { orderId: `order-${n}`, to, total: '19.90', currency: 'EUR' })
}

async function burst({ client }: LoadedPlatform): Promise<void> {
  for (let sent = 0; sent < BURST; sent += BULK) {
    await client.enqueueBulk(
      mathFactorial,
      Array.from({ length: BULK }, () => ({ n: 1_000 })),
    )
  }
}
