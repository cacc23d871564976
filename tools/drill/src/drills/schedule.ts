// Drill `schedule`: a schedule has a tick each second while the leader is killed again and again and Redis is killed and started
// again. The clocks of half the machines are 10 minutes ahead, among them that of the first leader.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BullmqBroker, openBroker } from '@bullpen/bullmq'
import { blockingConnection } from '@bullpen/bullmq/internal'
import { defineSchedule, type Log } from '@bullpen/contract'
import type { Drill } from '../drill.ts'
import { newNamespace } from '../environment/drill-setup.ts'
import { type Fleet, openFleet, type WorkerProcess } from '../environment/fleet.ts'
import { countOrphans } from '../environment/orphan-count.ts'
import { PATIENT_MS } from '../environment/patience.ts'
import { openRestartableRedis } from '../environment/restartable-redis.ts'
import type { Figures } from '../figures/figures.ts'
import { holdsWithin } from '../holds-within.ts'
import { catalogue, work } from '../programs/catalogue.ts'
import { scheduleFigures } from '../schedule/schedule-figures.ts'
import { storedTicks } from '../schedule/stored-ticks.ts'

/** The ticks between two faults are on time if the drill waits for `calmMs` before each fault. */
const PLANS = {
  small: { processes: 3, calmMs: 2_000, faults: ['kill', 'restart'] },
  full: {
    processes: 6,
    calmMs: 4_000,
    faults: Array.from({ length: 2 }, () => ['kill', 'kill', 'kill', 'kill', 'kill', 'restart'] as const).flat(),
  },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const TICK_MS = 1_000
const AHEAD_MS = 600_000
/** The leader's lease, and one second for the next leader to take over. */
const LATE_MS = 4_000
const WITHIN_MS = 20_000
/** A tick that is due this soon before the end of the drill may not have been handled, in ms. */
const LAST_MS = 1_500

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

const everySecond = defineSchedule({
  name: 'every-second',
  task: work,
  input: { ms: 0, listens: false },
  cron: '* * * * * *',
  overlap: 'allow',
  catchUp: { max: 100 },
})

export const schedule: Drill = {
  name: 'schedule',
  target: () => ({
    text: 'one tick per second, while leaders and Redis are killed and clocks are 10 min ahead: no tick missed or enqueued twice, lateness p99 <= 4 s (lease + 1 s)',
    atMost: {
      ticksMissed: 0,
      ticksDoubled: 0,
      ticksEarly: 0,
      tickLateP99Ms: LATE_MS,
      notTakenOver: 0,
      skewedNeverLed: 0,
    },
  }),
  known: undefined,
  comparable: false, // its job schedulers enqueue the next job when the previous one starts, and have no policy for missed ones
  run: (scale) => tickThrough(PLANS[scale]),
}

async function tickThrough({ processes, calmMs, faults }: Plan): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-schedule-'))
  await using opened = new AsyncDisposableStack()
  opened.defer(() => rmSync(dir, { recursive: true, force: true }))
  const redis = opened.adopt(await openRestartableRedis([work.queue]), (each) => each.end())
  const namespace = newNamespace()
  const broker = opened.adopt(
    openBroker({
      redisUrl: redis.url,
      namespace,
      queues: catalogue.queues,
      sizeLimit: 10_000,
      log: silent,
      commandTimeoutMs: PATIENT_MS,
      leads: false,
    }),
    (each) => each.close(),
  )
  const fleet = opened.adopt(
    openFleet({
      ledger: join(dir, 'effects.log'),
      metricsOf: (worker) => join(dir, `${worker}.metrics`),
      log: join(dir, 'workers.log'),
      system: 'bullpen',
      config: { redisUrl: redis.url, namespace, port: 0, logLevel: 'error', pools: { [work.queue]: 4 } },
    }),
    (each) => each.close(),
  )
  const control = opened.adopt(blockingConnection(redis.url, silent), (each) => each.disconnect())
  const leaderNow = async (): Promise<WorkerProcess | undefined> => {
    const holder = await control.get(`{${namespace}}:leader:lease`).catch(() => null)
    return fleet.workers.find(({ pid }) => holder?.includes(`:${pid}:`))
  }

  const skewed = new Set<string>()
  let started = 0
  const start = async (): Promise<void> => {
    const isAhead = started++ % 2 === 0
    const { name } = await fleet.start({}, isAhead ? { clockOffMs: AHEAD_MS } : {})
    if (isAhead) skewed.add(name)
  }
  // The first worker leads before the others start.
  await start()
  const first = await untilLed(leaderNow)
  const skewedNeverLed = first !== undefined && skewed.has(first.name) ? 0 : 1
  for (let i = 1; i < processes; i++) await start()

  const { state } = await broker.schedules.put(everySecond, { source: 'api', by: 'drill' })
  let notTakenOver = 0
  for (const fault of faults) {
    await sleep(calmMs)
    if (fault === 'restart') await redis.restart()
    else if (!(await killLeader(leaderNow, fleet))) notTakenOver++
    else await start()
  }
  await sleep(calmMs)
  const found = await figures(broker, { firstTick: state.record.next ?? 0, notTakenOver, skewedNeverLed })
  await countOrphans(redis.url, namespace)
  return found
}

async function figures(
  broker: BullmqBroker,
  {
    firstTick,
    ...rest
  }: { readonly firstTick: number; readonly notTakenOver: number; readonly skewedNeverLed: number },
): Promise<Figures> {
  const { now } = await broker.schedules.pause(everySecond.name, 'drill')
  return scheduleFigures({
    firstTick,
    lastTick: now - LAST_MS,
    everyMs: TICK_MS,
    stored: await storedTicks(broker),
    ...rest,
  })
}

/** Kills the leader. Returns whether another process then became the leader. */
async function killLeader(leaderNow: () => Promise<WorkerProcess | undefined>, fleet: Fleet): Promise<boolean> {
  const victim = await untilLed(leaderNow)
  if (victim === undefined || fleet.workers.length === 0) return false
  await victim.kill()
  return (await untilLed(leaderNow)) !== undefined
}

async function untilLed(leaderNow: () => Promise<WorkerProcess | undefined>): Promise<WorkerProcess | undefined> {
  let found: WorkerProcess | undefined
  await holdsWithin(WITHIN_MS, async () => {
    found = await leaderNow()
    return found !== undefined
  })
  return found
}
