// Sends receipts over HTTP at a steady rate, and looks what has become of them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@bullpen/client'
import type { Duration, TaskView } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { Receipt, Way } from './receipts-figures.ts'

const CANCELLED_DELAY = '3s'
const SETTLED_WITHIN_MS = 90_000
const LOOKS_AT_ONCE = 25

export interface ReceiptLoad {
  readonly way: Way
  /** So many, and more at the same rate while `more` says so. */
  readonly receipts: number
  readonly ratePerSecond: number
  readonly more: () => boolean
  /** How often the delivery of an order is made to fail. */
  readonly failures: (orderId: string) => number
}

/** At a steady rate, and before them one that is cancelled while it waits for its time. A refused one is its caller's to repeat. */
export async function sendReceipts(client: Client, load: ReceiptLoad): Promise<readonly Receipt[]> {
  const { way, receipts, ratePerSecond, more, failures } = load
  const send = async (orderId: string, delay?: Duration): Promise<Receipt | undefined> => {
    const input = { orderId, to: 'ann@example.org', total: '19.90', currency: 'EUR' }
    const options = delay === undefined ? {} : { delay }
    const task = await client.enqueue(receiptSend, input, options).catch(() => undefined)
    if (task === undefined) return undefined
    const cancelled = delay !== undefined
    if (cancelled) await client.cancel(task.id)
    return { id: task.id, orderId, way, failures: failures(orderId), cancelled }
  }
  const sent = [send(`${way}-cancelled`, CANCELLED_DELAY)]
  const began = performance.now()
  for (let n = 0; n < receipts || more(); n++) {
    await sleep(Math.max(0, began + (n / ratePerSecond) * 1_000 - performance.now()))
    sent.push(send(`${way}-${n}`))
  }
  return (await Promise.all(sent)).filter((receipt) => receipt !== undefined)
}

/** As the API shows them when they have ended; those that do not end in time, as they stand then. */
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
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, look))
  return views
}
