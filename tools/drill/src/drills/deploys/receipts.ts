// Drill `receipts`: delivers receipts over HTTP while workers are restarted, first with SIGTERM, then with SIGKILL.
import { createClient, http } from '@bullpen/client'
import type { TaskView } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { Drill } from '../../drill.ts'
import { withPrograms } from '../../environment/programs-setup.ts'
import type { Figures } from '../../figures/figures.ts'
import type { Exit } from '../../ledger/ledger.ts'
import { randomFrom } from '../../ledger/random.ts'
import { openReceiptEndpoint } from '../../receipts/receipt-endpoint.ts'
import { sendReceipts, settled } from '../../receipts/receipt-load.ts'
import { failuresOf, RECEIPT_PLANS, type ReceiptPlan } from '../../receipts/receipt-plans.ts'
import { startReceiptWorkers } from '../../receipts/receipt-workers.ts'
import { type Receipt, receiptFigures } from '../../receipts/receipts-figures.ts'
import type { Scale } from '../../report.ts'

/** The worker's default drain timeout plus its default grace period plus one second. */
const EXIT_AT_MOST_MS = 26_000
/** At small scale, other tests run at the same time and delay the exit, which is then judged as a time. */
const KILL_AFTER_MS: Readonly<Record<Scale, number>> = { small: 120_000, full: EXIT_AT_MOST_MS }
/** On a busy machine, the API is not available at every moment. */
const RETRY_FOR = '60s'
const RECOVERY_MS = 10_000
const RETRY_LATE_MS = 2_000

export const receipts: Drill = {
  name: 'receipts',
  target(scale) {
    const { restarts, concurrency } = RECEIPT_PLANS[scale]
    const most = restarts * concurrency
    return {
      text: `every receipt accepted exactly once, cancelled ones never; repeated deliveries: 0 with SIGTERM, <= kills x concurrency (${most}) with SIGKILL; failures retried as their policy says`,
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
  comparable: false, // plain BullMQ has neither an API nor steps
  run: (scale, seed) => deliver(RECEIPT_PLANS[scale], KILL_AFTER_MS[scale], seed),
}

async function deliver(plan: ReceiptPlan, killAfterMs: number, seed: number): Promise<Figures> {
  const random = randomFrom(seed)
  const endpoint = await openReceiptEndpoint({
    answerMs: plan.answerMs,
    failures: (orderId) => failuresOf(orderId, plan),
  })
  const { queue } = receiptSend
  const env = { BULLPEN_WORKER_POOLS: `${queue}=${plan.concurrency}` }
  const delivered = withPrograms({ drill: 'receipts', queue, env }, async ({ apiKey, programs, events }) => {
    const [api, workers] = await Promise.all([
      programs.start('api'),
      startReceiptWorkers(programs, endpoint, { ...plan, killAfterMs }),
    ])
    const client = createClient({ transport: http(api.url, apiKey), retryFor: RETRY_FOR })
    const accepted: Receipt[] = []
    const exits: Exit[] = []
    const views = new Map<string, TaskView>()
    for (const way of ['term', 'kill'] as const) {
      let restarting = true
      const load = { ...plan, way, more: () => restarting, failures: (orderId: string) => failuresOf(orderId, plan) }
      const sending = sendReceipts(client, load)
      exits.push(...(await workers.restart(way, plan, random).finally(() => (restarting = false))))
      const sent = await sending
      for (const view of await settled(client, sent)) views.set(view.id, view)
      accepted.push(...sent)
    }
    await events.close()
    const { completions } = events
    const { deliveries } = endpoint
    return receiptFigures({ receipts: accepted, views, deliveries, completions, exits, policy: receiptSend.retry })
  })
  return delivered.finally(() => endpoint.close())
}
