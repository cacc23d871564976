// Drill `silent`: under load, the connections to Redis go silent: nothing arrives any more, not even that they are closed, and new
// connections work. In turn: all connections to a single server, those to a primary that is frozen until a Sentinel replaces it, and those
// to a frozen node of a cluster.
import { setTimeout as sleep } from 'node:timers/promises'
import { faultProxy } from '@bullpen/testkit'
import type { Drill } from '../../drill.ts'
import { startApi } from '../../environment/drill-api.ts'
import { type DrillRedis, type DrillSetup, openRedis, withDrillSetup } from '../../environment/drill-setup.ts'
import { openFreezableCluster } from '../../environment/redis-cluster.ts'
import { openSentinelRedis } from '../../environment/sentinel-redis.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { type Random, randomFrom } from '../../ledger/random.ts'
import { work } from '../../programs/catalogue.ts'
import { type Call, startCallers } from '../../replication/callers.ts'
import { mergedFigures } from '../../replication/merged-figures.ts'
import { watchReadiness } from '../../replication/readiness.ts'

const PLANS = {
  small: { processes: 2, concurrency: 20, ratePerSecond: 20, silences: { single: 2, sentinel: 1, cluster: 1 } },
  full: { processes: 2, concurrency: 50, ratePerSecond: 50, silences: { single: 10, sentinel: 10, cluster: 10 } },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]
type Kind = keyof Plan['silences']

const TASK_MS = 100
/** Until the first fault, and from each fault to the next one. */
const LOAD_MS = 3_000
const EVERY_MS = 18_000
const ERRORS_WITHIN_MS = 10_000
/** 15 s, and what the readings and their replies may take. */
const READINESS_WITHIN_MS = 17_000
const IDLE_WITHIN_MS = 120_000

/** A Redis whose connections become silent. */
interface SilentRedis extends DrillRedis {
  /** The address for the API and the workers. */
  readonly processUrl: string
  silence(namespace: string): Promise<void>
  /** Undoes what the fault has left, before the next one. */
  mend(): Promise<void>
}

export const silent: Drill = {
  name: 'silent',
  target: (scale) => ({
    text: `after each of ${Object.values(PLANS[scale].silences).join(' + ')} silences (a single server, a Sentinel, a cluster), errors to callers end within 10 s, and readiness is right${scale === 'full' ? ' after 15 s' : ''}; no process ends`,
    atMost: {
      ...{ errorsEndMs: ERRORS_WITHIN_MS, readinessWrong: 0, processesEnded: 0, faultsWithoutEffect: 0 },
      ...(scale === 'full' && { readinessLateMs: READINESS_WITHIN_MS }),
    },
  }),
  known: undefined,
  comparable: false, // plain BullMQ has no API and no readiness
  run: async (scale, seed) => {
    const random = randomFrom(seed)
    const all: Figures[] = []
    for (const kind of ['single', 'sentinel', 'cluster'] as const) all.push(await silence(kind, PLANS[scale], random))
    return mergedFigures(all)
  },
}

async function silence(kind: Kind, plan: Plan, random: Random): Promise<Figures> {
  let redis: SilentRedis | undefined
  const open = async (): Promise<SilentRedis> => (redis = await OPEN[kind]())
  const act = async ({ namespace, fleet, effects, untilIdle, records }: DrillSetup): Promise<Figures> => {
    await using opened = new AsyncDisposableStack()
    if (redis === undefined) throw new Error('Redis is not open')
    const config = { redisUrl: redis.processUrl, namespace }
    const api = opened.adopt(await startApi(config), (each) => each.close())
    await Promise.all(Array.from({ length: plan.processes }, () => fleet.start({ redisUrl: config.redisUrl })))
    const pid = api.pid()
    const callers = startCallers([api], plan.ratePerSecond, TASK_MS)
    const startedAt = Date.now()
    const readiness = watchReadiness([
      { url: api.url, lastWorkedAt: () => callers.calls.findLast(({ id }) => id !== undefined)?.endedAt ?? startedAt },
      ...fleet.workers.map(({ name, url }) => ({
        url,
        lastWorkedAt: () => effects().findLast(({ worker }) => worker === name)?.at ?? startedAt,
      })),
    ])
    await sleep(LOAD_MS)
    const faults: number[] = []
    for (let i = 0; i < plan.silences[kind]; i++) {
      await sleep(random() * 1_000)
      faults.push(Date.now())
      readiness.fault()
      await redis.silence(namespace)
      await sleep(EVERY_MS)
      await redis.mend()
    }
    const { readinessLateMs, readinessWrong } = await readiness.stop()
    const calls = await callers.stop()
    const processesEnded = plan.processes - fleet.workers.length + (isAlive(pid) ? 0 : 1)
    await untilIdle(IDLE_WITHIN_MS)
    const accepted = calls.flatMap(({ id }) => id ?? [])
    const figures = figuresOf({ accepted, ...(await records(accepted)), interruptions: [], exits: [] })
    return {
      ...figures,
      silences: faults.length,
      errorsEndMs: errorsEndMs(calls, faults),
      readinessLateMs,
      readinessWrong,
      processesEnded,
      faultsWithoutEffect: faults.filter((at, n) => failedAfter(calls, at, faults[n + 1]).length === 0).length,
    }
  }
  return withDrillSetup('bullpen', { pools: { [work.queue]: plan.concurrency } }, act, open)
}

const failedAfter = (calls: readonly Call[], from: number, to = Number.POSITIVE_INFINITY): readonly Call[] =>
  calls.filter(({ id, endedAt }) => id === undefined && endedAt >= from && endedAt < to)

/** Returns the longest time from a fault to the end of the last call that failed before the next fault. */
function errorsEndMs(calls: readonly Call[], faults: readonly number[]): number {
  const times = faults.map(
    (at, n) => Math.max(at, ...failedAfter(calls, at, faults[n + 1]).map(({ endedAt }) => endedAt)) - at,
  )
  return Math.max(...times)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const OPEN: Readonly<Record<Kind, () => Promise<SilentRedis>>> = {
  async single() {
    const redis = await openRedis()
    const front = await faultProxy(redis.url)
    return {
      ...redis,
      queues: [work.queue],
      processUrl: front.url,
      silence: async () => void front.silence(),
      mend: async () => {},
      async end() {
        await front.close()
        await redis.end()
      },
    }
  },
  async sentinel() {
    const redis = await openSentinelRedis([work.queue])
    return {
      ...redis,
      processUrl: redis.front.url,
      async silence() {
        // The connections stay silent when the stopped server is replaced.
        redis.front.silence()
        await redis.freezePrimary()
      },
      mend: redis.replaceFrozen,
    }
  },
  async cluster() {
    const cluster = await openFreezableCluster([work.queue])
    return { ...cluster, processUrl: cluster.url, silence: () => cluster.freezeNode(work.queue), mend: cluster.thaw }
  },
}
