// Drill `containers`: replaces the workers in docker-compose.yml one after the other while they deliver receipts, and compares what its
// Prometheus has seen with the ledger.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, http } from '@bullpen/client'
import type { TaskView } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { Drill } from '../../drill.ts'
import { type Compose, HOST, openCompose } from '../../environment/compose.ts'
import { countOrphans } from '../../environment/orphan-count.ts'
import { NAMESPACE } from '../../environment/programs-setup.ts'
import { type PrometheusQueries, prometheusQueries } from '../../environment/prometheus/prometheus-queries.ts'
import { followQueue } from '../../environment/queue-events.ts'
import type { Figures } from '../../figures/figures.ts'
import type { Exit } from '../../ledger/ledger.ts'
import { rateErrorPercent } from '../../ledger/observed-rates.ts'
import { openReceiptEndpoint } from '../../receipts/receipt-endpoint.ts'
import { sendReceipts, settled } from '../../receipts/receipt-load.ts'
import { receiptFigures } from '../../receipts/receipts-figures.ts'
import type { Scale } from '../../report.ts'

interface Plan {
  readonly workers: number
  readonly concurrency: number
  readonly restarts: number
  /** The least time from one replacement to the next. */
  readonly replaceEveryMs: number
  readonly receipts: number
  readonly ratePerSecond: number
}

const PLANS: Readonly<Record<Scale, Plan>> = {
  small: { workers: 3, concurrency: 50, restarts: 2, replaceEveryMs: 13_000, receipts: 600, ratePerSecond: 15 },
  full: { workers: 3, concurrency: 100, restarts: 9, replaceEveryMs: 13_000, receipts: 2_000, ratePerSecond: 40 },
}

/** Shorter than the longest delivery, so that some tasks are requeued. */
const DRAIN = { drainMs: 2_000, graceMs: 1_000 }
const ANSWERS_MS = { least: 200, most: 5_000 }
/** Includes the time that Docker takes to stop a container. */
const EXIT_AT_MOST_MS = DRAIN.drainMs + DRAIN.graceMs + 2_000
const KILL_AFTER_S = 35

/** As in the dashboards, with the scrape interval of docker-compose.yml's Prometheus. */
const RATE_WINDOW_S = 20
const SCRAPED_WITHIN_MS = 15_000
/** Prometheus extrapolates from the scrapes within each window. */
const RATE_OUT_ERROR_AT_MOST_PERCENT = 10

export const containers: Drill = {
  name: 'containers',
  target: () => ({
    text: `0 attempts used up, every container's exit with 0 and <= ${EXIT_AT_MOST_MS} ms, running again <= 1 s after the requeue; Prometheus counts all tasks, and its rates in and out are off by <= 2% and <= ${RATE_OUT_ERROR_AT_MOST_PERCENT}%`,
    atMost: {
      attemptsUsed: 0,
      offPolicy: 0,
      cancelledDelivered: 0,
      exitsNotZero: 0,
      exitSlowestMs: EXIT_AT_MOST_MS,
      recoveryP99Ms: 1_000,
      enqueuedMiscounted: 0,
      completedMiscounted: 0,
      rateInErrorPercent: 2,
      rateOutErrorPercent: RATE_OUT_ERROR_AT_MOST_PERCENT,
    },
  }),
  known: undefined,
  comparable: false, // plain BullMQ has no images here
  run: (scale) => roll(PLANS[scale]),
}

async function roll(plan: Plan): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-containers-'))
  const key = randomBytes(16).toString('hex')
  const endpoint = await openReceiptEndpoint({ answerMs, failures: () => 0, host: HOST })
  const compose = await openCompose({
    project: `bullpen-drill-${randomUUID().slice(0, 8)}`,
    dir,
    env: {
      DIR: dir,
      API_PORT: '0',
      METRICS_PORT: '0',
      PROMETHEUS_PORT: '0',
      BULLPEN_API_KEYS: key,
      BULLPEN_LOG_LEVEL: 'warn',
      BULLPEN_WORKER_POOLS: `mail=${plan.concurrency}`,
      BULLPEN_WORKER_RECEIPT_ENDPOINT: endpoint.url('workers'),
    },
    workerEnv: {
      BULLPEN_WORKER_DRAIN_TIMEOUT: `${DRAIN.drainMs}ms`,
      BULLPEN_WORKER_GRACE: `${DRAIN.graceMs}ms`,
    },
  })
  try {
    await compose.up(plan.workers)
    return await deliver(compose, plan, { url: await compose.apiUrl(), key }, endpoint.deliveries)
  } catch (error) {
    console.error((await compose.logs()).slice(-20_000))
    throw error
  } finally {
    await compose.down()
    await endpoint.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function deliver(
  compose: Compose,
  plan: Plan,
  api: { readonly url: string; readonly key: string },
  deliveries: Awaited<ReturnType<typeof openReceiptEndpoint>>['deliveries'],
): Promise<Figures> {
  const events = followQueue(await compose.redisUrl(), `{${NAMESPACE}.mail}:mail:events`)
  try {
    const client = createClient({ transport: http(api.url, api.key) })
    let restarting = true
    const sending = sendReceipts(client, { ...plan, way: 'term', more: () => restarting, failures: () => 0 })
    const exits: Exit[] = []
    for (let n = 0; n < plan.restarts; n++) {
      const pause = sleep(plan.replaceEveryMs)
      exits.push(await replaceOldest(compose))
      await pause
    }
    restarting = false
    const receipts = await sending
    const views = new Map((await settled(client, receipts)).map((view) => [view.id, view]))
    const observed = await observedFigures(prometheusQueries(await compose.prometheusUrl()), [...views.values()])
    await events.close()
    await countOrphans(await compose.redisUrl(), NAMESPACE)
    const { completions } = events
    return {
      ...receiptFigures({ receipts, views, deliveries, completions, exits, policy: receiptSend.retry }),
      ...observed,
    }
  } finally {
    await events.close()
  }
}

/** Compares the totals and the rates that Prometheus has seen with the tasks as the API returns them. */
async function observedFigures(
  prometheus: PrometheusQueries,
  views: readonly TaskView[],
): Promise<Pick<Figures, 'enqueuedMiscounted' | 'completedMiscounted' | 'rateInErrorPercent' | 'rateOutErrorPercent'>> {
  const enqueued = views.map(({ enqueuedAt }) => Date.parse(enqueuedAt))
  const ended = views.flatMap(({ endedAt }) => (endedAt === undefined ? [] : [Date.parse(endedAt)]))
  const completed = views.filter(({ status }) => status === 'completed').length
  const miscounted = async (expression: string, real: number): Promise<number> => {
    const deadline = performance.now() + SCRAPED_WITHIN_MS
    for (;;) {
      const off = Math.abs((await prometheus.sum(expression)) - real)
      if (off === 0 || performance.now() > deadline) return off
      await sleep(500)
    }
  }
  // While tasks are both enqueued and completed
  const range = { from: Math.min(...ended) + RATE_WINDOW_S * 1_000, to: Math.max(...enqueued), stepS: 1 }
  const rateError = async (selector: string, times: readonly number[]): Promise<number> => {
    const samples = await prometheus.over(`sum(rate(${selector}[${RATE_WINDOW_S}s]))`, range)
    return rateErrorPercent(samples, times, RATE_WINDOW_S)
  }
  return {
    enqueuedMiscounted: await miscounted('bullpen_tasks_enqueued_total{queue="mail"}', views.length),
    completedMiscounted: await miscounted('bullpen_queue_tasks{queue="mail", status="completed"}', completed),
    rateInErrorPercent: await rateError('bullpen_tasks_enqueued_total{queue="mail"}', enqueued),
    // The sum of the workers' counters would miss what each worker ended before its first scrape and after its last one.
    rateOutErrorPercent: await rateError('bullpen_queue_tasks_ended_total{queue="mail"}', ended),
  }
}

/**
 * Replaces the oldest worker. As with an orchestrator, the new worker is ready before the old one receives its signal to shut
 * down.
 */
async function replaceOldest(compose: Compose): Promise<Exit> {
  const [oldest = ''] = await compose.workers()
  await compose.addWorker()
  const { code, tookMs } = await compose.stop(oldest, KILL_AFTER_S)
  return { worker: oldest, code, tookMs, at: Date.now() }
}

/** Derives the value from the number in the order's id, so that values are spread evenly. */
function answerMs(orderId: string): number {
  const n = Number(/\d+$/.exec(orderId)?.[0] ?? 0)
  return ANSWERS_MS.least + ((n * 7_919) % (ANSWERS_MS.most - ANSWERS_MS.least))
}
