// Drill `failover`: under load, the primary is killed and its replica promoted, which lags behind by nothing and by 300 ms. What is lost is
// counted by callers, and compared with what the API's log, its metrics and an alert say.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drill } from '../../drill.ts'
import { type DrillApi, startApi } from '../../environment/drill-api.ts'
import { type DrillSetup, withDrillSetup } from '../../environment/drill-setup.ts'
import { openPrometheus } from '../../environment/prometheus/prometheus.ts'
import { ask, openReplicatedRedis, type ReplicatedRedis } from '../../environment/replicated-redis.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { holdsWithin } from '../../holds-within.ts'
import { type Random, randomFrom } from '../../ledger/random.ts'
import { work } from '../../programs/catalogue.ts'
import { type Callers, startCallers } from '../../replication/callers.ts'
import { mergedFigures } from '../../replication/merged-figures.ts'

const PLANS = {
  small: { apis: 2, processes: 1, concurrency: 20, ratePerSecond: 40, failovers: 1 },
  full: { apis: 2, processes: 2, concurrency: 50, ratePerSecond: 200, failovers: 5 },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const LAGS_MS = [0, 300]
const TASK_MS = 50
/** The load before and after a failover. The failover is at the first accepted call after a random moment of the second that follows. */
const LOAD_MS = 4_000
/** A fault waits this long for a call that it hits. */
const HIT_WITHIN_MS = 30_000
const IDLE_WITHIN_MS = 120_000
const REPORTED_WITHIN_MS = 30_000
const SCRAPED_EVERY_MS = 500

export const failover: Drill = {
  name: 'failover',
  target: () => ({
    text: 'with 0 and 300 ms of replication lag: the log and the metrics report exactly the acknowledged tasks that are lost, and the alert fires; no other task is lost; with 300 ms, every failover loses tasks',
    atMost: { misreported: 0, alertsWrong: 0, faultsWithoutEffect: 0 },
  }),
  known: undefined,
  comparable: false, // it does not report what Redis has lost
  run: async (scale, seed) => {
    const random = randomFrom(seed)
    const all: Figures[] = []
    for (const lagMs of LAGS_MS) {
      for (let i = 0; i < PLANS[scale].failovers; i++) all.push(await failOver(PLANS[scale], lagMs, random))
    }
    return mergedFigures(all)
  },
}

async function failOver(plan: Plan, lagMs: number, random: Random): Promise<Figures> {
  let redis: ReplicatedRedis | undefined
  const open = async (): Promise<ReplicatedRedis> => (redis = await openReplicatedRedis([work.queue], lagMs))
  const act = async (setup: DrillSetup): Promise<Figures> => {
    await using opened = new AsyncDisposableStack()
    const { redisUrl, namespace, fleet, untilIdle, records } = setup
    const starting = Array.from({ length: plan.apis }, () => startApi({ redisUrl, namespace }))
    const apis = await Promise.all(starting)
    for (const api of apis) opened.defer(() => api.close())
    const prometheus = opened.adopt(await openPrometheus(SCRAPED_EVERY_MS), (each) => each.close())
    prometheus.scrape(
      apis.map(({ metricsUrl }) => metricsUrl),
      {},
    )
    await Promise.all(Array.from({ length: plan.processes }, () => fleet.start()))
    const callers = startCallers(apis, plan.ratePerSecond, TASK_MS)
    await sleep(LOAD_MS + random() * 1_000)
    const isHit = await failOverUnder(callers, redis)
    await sleep(LOAD_MS)
    const calls = await callers.stop()
    await untilIdle(IDLE_WITHIN_MS)

    const accepted = calls.flatMap(({ id }) => id ?? [])
    const exists = await existing(setup, accepted)
    const lost = new Set(accepted.filter((id) => !exists.has(id)))
    const isAlerted = async () =>
      (await prometheus.query('ALERTS{alertname="BullpenRedisLostTasks", alertstate="firing"}')).length > 0
    // Without a loss, the alert would not fire later either.
    const reported = () => reportedBy(apis)
    await holdsWithin(
      lost.size === 0 ? 0 : REPORTED_WITHIN_MS,
      async () => (await reported()) >= lost.size && (await isAlerted()),
    )
    const noted = new Set(
      (await ask(redisUrl, 'HKEYS', `{${namespace}.${work.queue}}:${work.queue}:lost-tasks`)) as string[],
    )
    noted.delete('newest')
    const [reportedLost, alerted] = [await reported(), await isAlerted()]
    const logged = apis.flatMap((api) => api.lostLines()).reduce((sum, { tasks }) => sum + tasks, 0)

    const { completions, ...rest } = await records(accepted.filter((id) => exists.has(id)))
    const figures = figuresOf({
      ...rest,
      ...{ accepted: accepted.filter((id) => exists.has(id)), interruptions: [], exits: [] },
      // A task whose end was lost has completed in both histories.
      completions: new Map([...completions.keys()].map((id) => [id, 1])),
      // An attempt whose end was lost is counted by its worker, and is in no record.
      counts: undefined,
    })
    return {
      ...figures,
      accepted: accepted.length,
      failovers: 1,
      acknowledgedLost: lost.size,
      reportedLost,
      misreported:
        notIn(lost, noted) + notIn(noted, lost) + Math.abs(reportedLost - lost.size) + Math.abs(logged - lost.size),
      alertsWrong: alerted === lost.size > 0 ? 0 : 1,
      resultsLost: [...completions.values()].filter((times) => times > 1).length,
      faultsWithoutEffect: !isHit || (lagMs > 0 && lost.size === 0) ? 1 : 0,
    }
  }
  return withDrillSetup('bullpen', { pools: { [work.queue]: plan.concurrency } }, act, open)
}

/**
 * Fails over when a call has just been accepted, which the replica lacks if it lags behind, and promotes the replica when another call has
 * begun. Returns whether both calls were made.
 */
async function failOverUnder(callers: Callers, redis: ReplicatedRedis | undefined): Promise<boolean> {
  const hits = { accepted: false, begun: false }
  const untilAccepted = async (): Promise<void> => {
    const from = Date.now()
    const isAccepted = () => callers.calls.some(({ id, begunAt }) => id !== undefined && begunAt > from)
    hits.accepted = await holdsWithin(HIT_WITHIN_MS, isAccepted)
  }
  const untilBegun = async (): Promise<void> => {
    const begun = callers.begun()
    hits.begun = await holdsWithin(HIT_WITHIN_MS, () => callers.begun() > begun)
  }
  await redis?.failOver(untilAccepted, untilBegun)
  return hits.accepted && hits.begun
}

const notIn = (ids: ReadonlySet<string>, others: ReadonlySet<string>): number =>
  [...ids].filter((id) => !others.has(id)).length

/** Returns which of these tasks exist. */
async function existing({ broker }: DrillSetup, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (const id of ids) if ((await broker.find(id as never)) !== undefined) found.add(id)
  return found
}

/** Returns how many lost tasks the metrics of the APIs report. */
async function reportedBy(apis: readonly DrillApi[]): Promise<number> {
  const texts = await Promise.all(
    apis.map(async ({ metricsUrl }) => (await fetch(new URL('/metrics', metricsUrl))).text()),
  )
  const values = texts.flatMap((text) => [...text.matchAll(/^bullpen_redis_lost_tasks_total\{.*\} (\d+)$/gm)])
  return values.reduce((sum, [, value]) => sum + Number(value), 0)
}
