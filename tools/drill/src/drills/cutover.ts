// Drill `cutover`: a queue of plain BullMQ is cut over to Bullpen while its jobs run. Half of the old Workers are killed, the others close.
// Attached Workers and an API take over, and are killed meanwhile.
import { Redis } from 'ioredis'
import { cutoverFigures, type Death } from '../cutover/cutover-figures.ts'
import { addPlainJobs, plainJob, readJobEnds } from '../cutover/plain-jobs.ts'
import type { Drill } from '../drill.ts'
import { startApi } from '../environment/drill-api.ts'
import { type DrillSetup, withDrillSetup } from '../environment/drill-setup.ts'
import type { Fleet, WorkerProcess } from '../environment/fleet.ts'
import type { Figures } from '../figures/figures.ts'
import { holdsWithin } from '../holds-within.ts'
import { interruptedBy } from '../ledger/attempts.ts'
import { momentsIn, pick, type Random, randomFrom } from '../ledger/random.ts'
import { work } from '../programs/catalogue.ts'

const PLANS = {
  small: { jobs: 600, workers: 2, concurrency: 10, kills: 2, ms: 100, delayMs: 4_000 },
  full: { jobs: 100_000, workers: 4, concurrency: 50, kills: 10, ms: 100, delayMs: 30_000 },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const { queue } = work
/** The leader visits a queue every 1.5 s. */
const SEEN_MS = 5_000
/** The locks of plain BullMQ last 30 s. */
const RECOVERY_MS = 45_000
const WITHIN_MS = 300_000
/** The share of the jobs that is left when the old Workers are stopped. */
const LEFT_BY_OLD = 0.8

export const cutover: Drill = {
  name: 'cutover',
  target(scale) {
    const { jobs, kills, workers, concurrency } = PLANS[scale]
    const most = (kills + workers / 2) * concurrency
    return {
      text: `${jobs} jobs of plain BullMQ, waiting, delayed, with priorities, retries and removeOn*: half of the old Workers are killed, the others close, and attached Workers take over, ${kills} of which are killed, and so is the leader: each job ends as its options say, none runs twice except those that a killed Worker ran (<= ${most}), the counts are right, and the leader names the old Workers <= ${SEEN_MS / 1_000} s after their start`,
      atMost: {
        restartedUnaffected: 0,
        effectsRepeated: most,
        countsWrong: 0,
        unattachedSeenMs: SEEN_MS,
        recoveryP99Ms: RECOVERY_MS,
      },
    }
  },
  known: undefined,
  comparable: false, // it is what is cut over
  run: (scale, seed, system) => {
    const plan = PLANS[scale]
    const pools = { [queue]: plan.concurrency }
    return withDrillSetup(system, { pools }, (setup) => cutOver(plan, setup, randomFrom(seed)))
  },
}

async function cutOver(plan: Plan, setup: DrillSetup, random: Random): Promise<Figures> {
  const { redisUrl, namespace, broker, fleetOf, untilIdle, records } = setup
  const prefix = `{${namespace}.${queue}}`
  const planned = Array.from({ length: plan.jobs }, (_, n) => plainJob(n, plan))
  const ids = await addPlainJobs(redisUrl, prefix, planned)
  const left = async (): Promise<number> => {
    const { waiting, active, scheduled, retrying } = await broker.counts(queue)
    return waiting + active + scheduled + retrying
  }
  const redis = new Redis(redisUrl)
  const kill: Kill = async (worker) => {
    await setup.nextStart(worker.name)
    const at = await worker.kill()
    const active = new Set(await redis.lrange(`${prefix}:${queue}:active`, 0, -1))
    const startedBy = new Map(
      setup.effects().flatMap((each) => (each.what === 'start' ? [[each.id, each.worker]] : [])),
    )
    return { worker: worker.name, at, unended: [...active].filter((id) => startedBy.get(id) === worker.name) }
  }
  const api = await startApi({ redisUrl, namespace })
  try {
    const old = fleetOf('bullmq')
    await Promise.all(Array.from({ length: plan.workers }, () => old.start()))
    const seen = untilSeen(setup)
    await holdsWithin(WITHIN_MS, async () => (await left()) < plan.jobs * LEFT_BY_OLD)
    const attached = fleetOf('attached')
    const deaths = await stopOld(old, kill)
    await Promise.all(Array.from({ length: plan.workers }, () => attached.start()))
    deaths.push(...(await killWhile(plan, { attached, kill, left, random, replaceApi: api.replace })))
    await untilIdle(WITHIN_MS)
    await holdsWithin(WITHIN_MS, async () => (await countsOff(setup, redis, prefix)) === 0)
    const countsWrong = await countsOff(setup, redis, prefix)
    const { effects, completions } = await records([])
    const interruptions = deaths.flatMap(({ worker, at }) => interruptedBy(effects, worker, at))
    const jobs = new Map(ids.map((id, n) => [id, planned[n] ?? plainJob(n, plan)]))
    const found = await readJobEnds(redis, `${prefix}:${queue}:`, ids)
    const figures = cutoverFigures({ jobs, found, effects, completions, deaths, interruptions })
    return { ...figures, countsWrong, unattachedSeenMs: await seen }
  } finally {
    redis.disconnect()
    await api.close()
  }
}

/** Returns how long it takes from now until the leader has named the old Workers. */
async function untilSeen({ broker }: DrillSetup): Promise<number> {
  const startedAt = performance.now()
  const isSeen = await holdsWithin(WITHIN_MS, async () => (await broker.head(queue)).unattached !== undefined)
  return isSeen ? Math.round(performance.now() - startedAt) : Number.POSITIVE_INFINITY
}

/** Kills a worker while it runs jobs. */
type Kill = (worker: WorkerProcess) => Promise<Death>

/** Kills every second old Worker while it runs jobs, and lets the others end theirs. */
async function stopOld(old: Fleet, kill: Kill): Promise<Death[]> {
  const deaths: Death[] = []
  const closing: Promise<unknown>[] = []
  for (const [n, worker] of [...old.workers].entries()) {
    if (n % 2 === 1) {
      closing.push(worker.end(WITHIN_MS))
      continue
    }
    deaths.push(await kill(worker))
  }
  await Promise.all(closing)
  return deaths
}

interface Killing {
  readonly attached: Fleet
  readonly kill: Kill
  readonly left: () => Promise<number>
  readonly random: Random
  readonly replaceApi: () => Promise<void>
}

/** Kills an attached Worker whenever a random share of the jobs has ended, and at every second time the API, which leads, too. */
async function killWhile({ kills }: Plan, killing: Killing): Promise<readonly Death[]> {
  const { attached, kill, left, random, replaceApi } = killing
  const deaths: Death[] = []
  const replacements: Promise<unknown>[] = []
  const first = await left()
  for (const [n, done] of momentsIn(first * 0.8, kills, random).entries()) {
    await holdsWithin(WITHIN_MS, async () => first - (await left()) >= done)
    if (attached.workers.length === 0) await replacements.at(-1)
    deaths.push(await kill(pick(attached.workers, random)))
    replacements.push(attached.start())
    if (n % 2 === 0) replacements.push(replaceApi())
  }
  await Promise.all(replacements)
  return deaths
}

/** Returns by how much the queue's counts, totals and bytes differ from the jobs in BullMQ's own sets, and 1 if an old Worker is left. */
async function countsOff({ broker }: DrillSetup, redis: Redis, prefix: string): Promise<number> {
  const [completed, failed] = await Promise.all(
    ['completed', 'failed'].map((set) => redis.zcard(`${prefix}:${queue}:${set}`)),
  )
  const [counts, totals, { unattached }] = await Promise.all([
    broker.counts(queue),
    broker.totals(queue),
    broker.head(queue),
  ])
  const kept = (completed ?? 0) + (failed ?? 0)
  const differences = [
    counts.completed - (completed ?? 0),
    counts.dead - (failed ?? 0),
    totals.accepted - totals.removed - kept,
    totals.unaccounted,
    totals.bytes,
  ]
  return differences.reduce((sum, each) => sum + Math.abs(each), unattached === undefined ? 0 : 1)
}
