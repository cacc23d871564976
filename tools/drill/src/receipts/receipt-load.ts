// Enqueues receipts over HTTP at a steady rate, and then looks up how they ended.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import type { Duration, TaskView } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { Receipt, Way } from './receipts-figures.ts'

/** Longer than it takes to cancel the task on a busy machine. */
const CANCELLED_DELAY = '30s'
const SETTLED_WITHIN_MS = 90_000
const CONCURRENT_READS = 25

export interface ReceiptLoad {
  readonly way: Way
  /** The minimum number of receipts. More are enqueued at the same rate while `more` returns true. */
  readonly receipts: number
  readonly ratePerSecond: number
  readonly more: () => boolean
  /** How many deliveries of an order fail. */
  readonly failures: (orderId: string) => number
}

/**
 * Enqueues the receipts, and returns those that the API has accepted. The first receipt is scheduled and cancelled immediately.
 */
export async function sendReceipts(client: Client, load: ReceiptLoad): Promise<readonly Receipt[]> {
  const { way, receipts, ratePerSecond, more, failures } = load
  const send = async (orderId: string, delay?: Duration): Promise<Receipt | undefined> => {
    const input = { orderId, to: 'ann@example.org', total: '19.90', currency: 'EUR' }
    const options = delay === undefined ? {} : { delay }
    const task = await client.enqueue(receiptSend, input, options).catch(() => undefined)
    if (task === undefined) return undefined
    const cancelled = delay !== undefined
    if (cancelled) await task.cancel()
    return { id: task.id, orderId, way, failures: failures(orderId), cancelled }
  }
  const sent = [send(`${way}-cancelled`, CANCELLED_DELAY)]
  const startedAt = performance.now()
  for (let n = 0; n < receipts || more(); n++) {
    await sleep(Math.max(0, startedAt + (n / ratePerSecond) * 1_000 - performance.now()))
    sent.push(send(`${way}-${n}`))
  }
  return (await Promise.all(sent)).filter((receipt) => receipt !== undefined)
}

/** Returns the tasks in the form in which the API returns them when they have ended, or after the timeout. */
export async function settled(client: Client, sent: readonly Receipt[]): Promise<readonly TaskView[]> {
  const signal = AbortSignal.timeout(SETTLED_WITHIN_MS)
  const left = [...sent]
  const views: TaskView[] = []
  const look = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { id } = next
      views.push(await client.waitUntilFinished(id, { signal }).catch(() => client.task(id)))
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_READS }, look))
  return views
}
