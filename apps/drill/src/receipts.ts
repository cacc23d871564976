// Drill `receipts`: receipts over HTTP, from the client to the endpoint, while the workers are restarted: told to end, then killed.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient } from '@bullpen/client'
import type { Duration, TaskView } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { Drill } from './drill.ts'
import type { Exit, Figures } from './figures.ts'
import { runPrograms } from './programs.ts'
import { followQueue } from './queue-events.ts'
import { randomFrom } from './random.ts'
import { receiptEndpoint } from './receipt-endpoint.ts'
import { failuresOf, RECEIPT_PLANS, type ReceiptPlan } from './receipt-plans.ts'
import { startReceiptWorkers } from './receipt-workers.ts'
import { type Receipt, receiptFigures, type Way } from './receipts-figures.ts'
import { openRedis } from './stage.ts'

const CANCELLED_DELAY = '3s'
/** The worker's defaults for drain and grace, and a second. */
const EXIT_AT_MOST_MS = 26_000
const RECOVERY_MS = 10_000
const RETRY_LATE_MS = 2_000
const SETTLED_WITHIN_MS = 90_000
const LOOKS_AT_ONCE = 25

export const receipts: Drill = {
  name: 'receipts',
  target(scale) {
    const { restarts, concurrency } = RECEIPT_PLANS[scale]
    const most = restarts * concurrency
    return {
      text: `every receipt taken exactly once, the cancelled ones never; delivered again: 0 with SIGTERM, <= kills x concurrency (${most}) with SIGKILL; failures retried as their policy says`,
      atMost: {
        repeatedBySigterm: 0,
        repeatedBySigkill: most,
        restarted: most,
        offPolicy: 0,
        cancelledDelivered: 0,
        recoveryP99Ms: RECOVERY_MS,
        retryLateMs: RETRY_LATE_MS,
        exitSlowestMs: EXIT_AT_MOST_MS,
        exitsNotZero: 0,
      },
    }
  },
  known: undefined,
  comparable: false, // it has neither an API nor steps
  run: (scale, seed) => deliver(RECEIPT_PLANS[scale], seed),
}

async function deliver(plan: ReceiptPlan, seed: number): Promise<Figures> {
  const random = randomFrom(seed)
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-receipts-'))
  const log = join(dir, 'programs.log')
  const redis = await openRedis()
  const endpoint = await receiptEndpoint(plan.answerMs, (orderId) => failuresOf(orderId, plan))
  const key = randomBytes(16).toString('hex')
  const programs = runPrograms({ log, env: settings(redis.url, key, plan) })
  const events = followQueue(redis.url, '{bullpen.mail}:mail:events')
  try {
    const [api, workers] = await Promise.all([
      programs.start('api'),
      startReceiptWorkers(programs, endpoint, { ...plan, exitAtMostMs: EXIT_AT_MOST_MS }),
    ])
    const client = createClient({ baseUrl: api.url, key })
    const accepted: Receipt[] = []
    const exits: Exit[] = []
    const views = new Map<string, TaskView>()
    for (const way of ['term', 'kill'] as const) {
      let restarting = true
      const sending = sendAll(client, way, { plan, more: () => restarting })
      exits.push(...(await workers.restart(way, plan, random).finally(() => (restarting = false))))
      const sent = await sending
      for (const view of await settled(client, sent)) views.set(view.id, view)
      accepted.push(...sent)
    }
    await events.close()
    const { completions } = events
    const { deliveries } = endpoint
    return receiptFigures({ receipts: accepted, views, deliveries, completions, exits, policy: receiptSend.retry })
  } catch (error) {
    console.error(readFileSync(log, 'utf8').slice(-20_000))
    throw error
  } finally {
    await programs.close()
    await events.close()
    await endpoint.close()
    await redis.end()
    rmSync(dir, { recursive: true, force: true })
  }
}

function settings(redisUrl: string, key: string, { concurrency }: ReceiptPlan) {
  return {
    REDIS_URL: redisUrl,
    BULLPEN_API_KEYS: key,
    BULLPEN_API_PORT: '0',
    BULLPEN_API_METRICS_PORT: '0',
    BULLPEN_WORKER_PORT: '0',
    BULLPEN_WORKER_POOLS: `mail=${concurrency}`,
  }
}

/** At a steady rate, and before them one that is cancelled while it waits for its time. A refused one is its caller's to repeat. */
async function sendAll(
  client: Client,
  way: Way,
  { plan, more }: { readonly plan: ReceiptPlan; readonly more: () => boolean },
): Promise<readonly Receipt[]> {
  const send = async (orderId: string, delay?: Duration): Promise<Receipt | undefined> => {
    const input = { orderId, to: 'ann@example.org', total: '19.90', currency: 'EUR' }
    const options = delay === undefined ? {} : { delay }
    const task = await client.enqueue(receiptSend, input, options).catch(() => undefined)
    if (task === undefined) return undefined
    const cancelled = delay !== undefined
    if (cancelled) await client.cancel(task.id)
    return { id: task.id, orderId, way, failures: failuresOf(orderId, plan), cancelled }
  }
  const sent = [send(`${way}-cancelled`, CANCELLED_DELAY)]
  const began = performance.now()
  for (let n = 0; n < plan.receipts || more(); n++) {
    await sleep(Math.max(0, began + (n / plan.ratePerSecond) * 1_000 - performance.now()))
    sent.push(send(`${way}-${n}`))
  }
  return (await Promise.all(sent)).filter((receipt) => receipt !== undefined)
}

/** As the API shows them when they have ended; those that do not end in time, as they stand then. */
async function settled(client: Client, sent: readonly Receipt[]): Promise<readonly TaskView[]> {
  const signal = AbortSignal.timeout(SETTLED_WITHIN_MS)
  const left = [...sent]
  const views: TaskView[] = []
  const look = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { id } = next
      views.push(await client.settled(undefined, id, { signal }).catch(() => client.task(undefined, id)))
    }
  }
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, look))
  return views
}
