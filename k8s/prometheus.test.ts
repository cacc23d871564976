// Runs a real Prometheus against an API and a worker under a mixed load: every panel and every alert reads metrics that exist, and the
// counters agree with what the test has done.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import {
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineQueue,
  defineSource,
  defineSourceHandler,
  defineTask,
  rateLimited,
  TaskError,
} from '@bullpen/contract'
import { ALERTS } from '@bullpen/telemetry/alerts'
import { ANNOTATIONS, DASHBOARDS, metricsIn, withAllChosen } from '@bullpen/telemetry/dashboards'
import { freePort, promtool, spawnProgram, startPrometheus } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { createWorker } from '@bullpen/worker'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { endless } from './lost-worker.fixture.ts'
import { UNSEEN_METRICS } from './unseen-metrics.ts'

const EMPTY = Object.keys(UNSEEN_METRICS)

const SENT = 20
const RETRIED = 3
const DECLINED = 12
/** Ends a test that hangs. */
const WITHIN = '2m'

const input = z.object({ n: z.int() })
const once = { retry: { maxAttempts: 1 } } as const
const small = defineQueue({ name: 'small', limits: { maxTasks: 2 } })
const slo = { startWithin: '1h', objective: 0.9 } as const
const send = defineTask({ name: 'mail.send', queue: 'mail', input, kind: 'short', slo })
const retried = defineTask({
  ...{ name: 'mail.retried', queue: 'mail', input },
  retry: { maxAttempts: 2, backoff: { initialDelay: '1ms' } },
})
const declined = defineTask({ name: 'mail.declined', queue: 'mail', input, ...once })
const slow = defineTask({ name: 'mail.slow', queue: 'mail', input, timeout: '50ms', ...once })
const parked = defineTask({ name: 'small.parked', queue: small, input })
const closed = defineTask({ name: 'closed.any', queue: 'closed', input, expectedDuration: '90s' })
const guarded = defineQueue({ name: 'busy', breakers: { smtp: {} } })
const busy = defineTask({ name: 'busy.any', queue: guarded, input })
const held = defineTask({ name: 'held.any', queue: 'held', input, queueTimeout: '50ms' })
const gen = defineSource({ name: 'numbers.gen', queue: 'numbers', input, item: input })
const square = defineTask({ name: 'numbers.square', queue: 'numbers', input, output: input })
const squares = definePipeline('squares').source(gen).map(square, { concurrency: 2 })
const catalogue = defineCatalogue(
  send,
  retried,
  declined,
  slow,
  parked,
  closed,
  busy,
  held,
  gen,
  square,
  squares,
  endless,
)

interface Ports {
  readonly api: number
  readonly worker: number
}

/**
 * Starts an API and a worker, whose metrics are at these ports. `returnLate` lets the handler of `mail.slow` return after its attempt has
 * timed out. `busyStarted` resolves when the second attempt of `busy.any` runs, which it does until the test ends.
 */
async function startPlatform(ports: Ports) {
  const late = Promise.withResolvers<void>()
  const busyStarted = Promise.withResolvers<void>()
  const busyEnds = Promise.withResolvers<void>()
  const handlers = {
    'mail.send': defineHandler(send, import.meta.url, () => {}),
    'mail.retried': defineHandler(retried, import.meta.url, ({ attempt }) => {
      if (attempt === 1) throw new TaskError('busy', 'the server is busy')
    }),
    'mail.declined': defineHandler(declined, import.meta.url, () => {
      throw new TaskError('declined', 'the card was declined', { retryable: false })
    }),
    'mail.slow': defineHandler(slow, import.meta.url, () => late.promise),
    'small.parked': defineHandler(parked, import.meta.url, () => {}),
    'closed.any': defineHandler(closed, import.meta.url, () => {}),
    'busy.any': defineHandler(busy, import.meta.url, async ({ fencingToken }) => {
      if (fencingToken === 1) throw rateLimited('1ms')
      busyStarted.resolve()
      await busyEnds.promise
    }),
    'held.any': defineHandler(held, import.meta.url, () => {}),
    'lost.any': defineHandler(endless, import.meta.url, () => {}),
    'numbers.gen': defineSourceHandler(gen, import.meta.url, function* ({ n }) {
      for (let i = 1; i <= n; i++) yield { n: i }
    }),
    'numbers.square': defineHandler(square, import.meta.url, ({ input: { n } }) => ({ n: n * n })),
  }
  const key = randomUUID()
  const config = { redisUrl: inject('redisUrl'), namespace: `t-${randomUUID().slice(0, 12)}`, port: 0 } as const
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const api = await createApi({ catalogue, log, config: { ...config, keys: [key], metricsPort: ports.api } })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const client = createClient({ transport: http(url, key) })
  onTestFinished(() => client.close())
  const worker = createWorker({
    catalogue,
    handlers,
    config: {
      ...config,
      logLevel: 'silent',
      grace: '10ms',
      pools: { mail: 4, numbers: 4, closed: 1, busy: 1 },
      port: ports.worker,
    },
  })
  onTestFinished(async () => {
    busyEnds.resolve()
    await worker.drain()
  })
  await worker.start()
  const command = async (body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const { status } = await fetch(`${url}/v1/commands`, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(status).toBe(200)
  }
  /** Kills a worker while it runs a task. */
  const loseWorker = async (): Promise<void> => {
    await client.enqueue(endless, { n: 1 })
    const { redisUrl, namespace } = config
    const args = ['--redis-url', redisUrl, '--namespace', namespace, '--pools', 'lost=1', '--port', '0']
    const lost = spawnProgram(new URL('lost-worker.fixture.ts', import.meta.url).pathname, args)
    await eventually(() => lost.output().includes('the task has started'))
    lost.child.kill('SIGKILL')
  }
  return { client, command, loseWorker, returnLate: late.resolve, busyStarted: busyStarted.promise }
}

test('every panel and every alert reads metrics that exist, and the counters agree with a ledger', async () => {
  const ports = { api: await freePort(), worker: await freePort() }
  const metricsUrls = [ports.api, ports.worker].map((port) => `http://127.0.0.1:${port}/metrics`)
  // Prometheus begins to scrape up to five seconds after its start, so it starts together with the platform.
  const [{ query, rules }, { client, command, loseWorker, returnLate, busyStarted }] = await Promise.all([
    startPrometheus(metricsUrls),
    startPlatform(ports),
  ])

  // Other tests may have used this process for longer than the window of the alert, so the alert counts only what is added to a counter
  // that Prometheus has read before.
  await (await client.enqueue(declined, { n: 0 })).result({ timeout: WITHIN }).catch(() => {})
  await scraped(async () =>
    expect(await query('bullpen_tasks_dead_total{task="mail.declined"}')).toMatchObject([{ value: 1 }]),
  )

  await command({ action: 'pause', queue: 'small' })
  await command({ action: 'pause', queue: 'held' })
  const workerLost = loseWorker()
  await client.enqueue(busy, { n: 0 })
  await busyStarted
  await command({ action: 'drain', queue: 'busy', mode: 'soft_timeout', timeout: '1h' })
  await command({ action: 'drain', queue: 'closed', mode: 'soft' })
  await command({ action: 'breaker', queue: 'busy', service: 'smtp', to: 'open' })
  const run = await client.startPipeline(squares, { n: 5 })
  const group = await client.createGroup()
  await group.add(square, [{ n: 1 }], { seal: true })
  const expiring = await client.enqueue(held, { n: 1 })
  await (await client.enqueue(held, { n: 2 }, { delay: '1h' })).cancel()
  const tasks = [
    ...Array.from({ length: SENT }, (_, n) => client.enqueue(send, { n })),
    ...Array.from({ length: RETRIED }, (_, n) => client.enqueue(retried, { n })),
    ...Array.from({ length: DECLINED - 1 }, (_, n) => client.enqueue(declined, { n: n + 1 })),
    client.enqueue(slow, { n: 0 }),
  ]
  for (const task of tasks) await (await task).result({ timeout: WITHIN }).catch(() => {})
  returnLate()
  await client.enqueue(parked, { n: 1 })
  await client.enqueue(parked, { n: 2 })
  await expect(client.enqueue(parked, { n: 3 })).rejects.toMatchObject({ code: 'queue_full' })
  // The API learns of the drain shortly after it has accepted the command.
  await eventually(() =>
    client.enqueue(closed, { n: 1 }).then(
      () => false,
      ({ code }) => code === 'queue_draining',
    ),
  )
  await run.waitUntilEnded({ timeout: WITHIN })
  await group.waitUntilEnded({ timeout: WITHIN })
  await workerLost
  await expect(expiring.result({ timeout: WITHIN })).rejects.toMatchObject({ task: { status: 'expired' } })

  const ledger = {
    'bullpen_tasks_enqueued_total{queue="mail"}': SENT + RETRIED + DECLINED + 1,
    'bullpen_tasks_enqueued_total{queue="small"}': 2,
    'bullpen_enqueue_duration_seconds_count{queue="mail"}': SENT + RETRIED + DECLINED + 1,
    'bullpen_tasks_refused_total{queue="small", limit="maxTasks", action="rejected"}': 1,
    'bullpen_slo_tasks_total{task="mail.send"}': SENT,
    'bullpen_slo_late_tasks_total{task="mail.send"}': 0,
    'bullpen_attempts_started_total{queue="mail"}': SENT + 2 * RETRIED + DECLINED + 1,
    'bullpen_attempts_ended_total{queue="mail", verdict="completed"}': SENT + RETRIED,
    'bullpen_attempts_ended_total{queue="mail", verdict="retrying"}': RETRIED,
    'bullpen_attempt_duration_seconds_count{queue="mail"}': SENT + 2 * RETRIED + DECLINED + 1,
    'bullpen_task_duration_seconds_count{queue="mail"}': SENT + RETRIED + DECLINED + 1,
    'bullpen_attempt_failures_total{queue="mail", reason="declared"}': RETRIED + DECLINED,
    'bullpen_attempt_failures_total{queue="mail", reason="run_timeout"}': 1,
    'bullpen_tasks_dead_total{queue="mail"}': DECLINED + 1,
    'bullpen_tasks_dead_by_code_total{queue="mail", code="declined"}': DECLINED,
    'bullpen_late_results_total{queue="mail"}': 1,
    'bullpen_attempts_ended_total{queue="busy", verdict="requeued"}': 1,
    'bullpen_tasks_cancelled_total{queue="held"}': 1,
    'bullpen_tasks_expired_total{queue="held"}': 1,
    'bullpen_groups_ended_total{result="completed"}': 1,
    'bullpen_run_items_total{pipeline="squares"}': 5,
    'bullpen_runs_ended_total{pipeline="squares", result="completed"}': 1,
  }
  for (const [selector, value] of Object.entries(ledger)) {
    await scraped(async () => expect(await query(`sum(${selector})`), selector).toEqual([{ labels: {}, value }]))
  }
  const gauges = {
    'max(bullpen_queue_tasks{queue="mail", status="completed"})': SENT + RETRIED,
    'max(bullpen_queue_tasks{queue="mail", status="dead"})': DECLINED + 1,
    'max(bullpen_queue_tasks{queue="small", status="waiting"})': 2,
    'max(bullpen_queue_tasks_ended_total{queue="mail"})': SENT + RETRIED + DECLINED + 1,
    'max(bullpen_queue_tasks_ended_total{queue="held"})': 2,
    'max(bullpen_queue_tasks_recovered_total{queue="lost"})': 1,
    'max(bullpen_queue_limit_tasks{queue="small"})': 2,
    'max(bullpen_queue_paused{queue="small"})': 1,
    'max(bullpen_breaker_state{queue="busy", service="smtp", state="open"})': 1,
    'count(bullpen_redis_connections{state="ready"} >= 2)': 2, // the API and the worker
    'sum(bullpen_redis_connections{state="not_ready"})': 0,
    'max(bullpen_slo_start_within_seconds)': 3_600,
    'min(bullpen_slo_objective_ratio)': 0.9,
    'sum(bullpen_pool_slots{queue=~"mail|numbers"})': 8,
    'max(bullpen_task_expected_seconds{queue="closed"})': 90,
    'bullpen:queue_backlog_seconds{queue="small"}': 0, // it is paused
    'bullpen:queue_run_seconds{queue="closed"}': 90,
    'bullpen:queue_slots_per_worker{queue="mail"}': 4,
    'bullpen:queue_backlog_target_seconds{queue="mail"}': 1_800,
    'bullpen:queue_backlog_target_seconds{queue="small"}': 30,
    'sum(bullpen_pool_state{queue="busy", state="SHUTTING_DOWN"})': 1,
    'max(bullpen_drain_deadline_timestamp_seconds{queue="busy"} - time() > bool 3000)': 1,
    'max(bullpen_redis_write_failed)': 0,
    'sum(bullpen_leader)': 1,
    'sum(bullpen_unaccounted_tasks)': 0,
  }
  for (const [expression, value] of Object.entries(gauges)) {
    await scraped(async () =>
      expect(
        (await query(expression)).map((each) => each.value),
        expression,
      ).toEqual([value]),
    )
  }

  const panels = Object.values(DASHBOARDS).flatMap(({ sections }) => sections.flatMap((section) => section.panels))
  const expressions = [...panels.flatMap(({ queries }) => queries), ...ANNOTATIONS].map(({ expr }) => chosen(expr))
  expect(expressions.length).toBeGreaterThan(70)
  await scraped(async () => {
    const answers = await Promise.all(expressions.map(query))
    const empty = expressions.filter((_, i) => answers[i]?.length === 0)
    expect([...new Set(empty.flatMap(metricsIn))].toSorted()).toEqual(EMPTY)
  })

  // Healthy queues do not let an alert return anything, so each of its metrics is read instead.
  const read = new Set(ALERTS.flatMap(({ expr }) => metricsIn(expr)))
  for (const metric of read) {
    if (!EMPTY.includes(metric)) await scraped(async () => expect(await query(metric), metric).not.toEqual([]))
  }
  await scraped(async () => {
    const all = (await rules()).filter(({ type }) => type === 'alerting')
    expect(all.map(({ name, health }) => [name, health])).toEqual(ALERTS.map(({ name }) => [name, 'ok']))
    const firing = all.filter(({ state }) => state === 'firing')
    expect(firing.map(({ name }) => name)).toEqual(['BullpenDeadTasksGrow'])
  })

  for (const url of metricsUrls) {
    expect(await promtool(['check', 'metrics'], await (await fetch(url)).text())).toEqual({ code: 0, output: '' })
  }
})

/** Waits until Prometheus has scraped what the test has done. */
const scraped = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 120_000, interval: 50 })

/** Marks last for an hour instead of a minute, so that they are there even if the test is slow. */
const chosen = (expression: string): string => withAllChosen(expression, '1m').replaceAll('offset 1m', 'offset 1h')
