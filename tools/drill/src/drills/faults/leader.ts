// Drill `leader`: kills, pauses and cuts off the worker that leads the namespace. During these faults, tasks run in the workers,
// and other tasks pass their queue timeout in a queue that no worker serves, so that only the leader can end them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallOptions, TaskId } from '@bullpen/contract'
import { type FaultProxy, faultProxy } from '@bullpen/testkit'
import type { Drill } from '../../drill.ts'
import { type DrillSetup, openRedis, withDrillSetup } from '../../environment/drill-setup.ts'
import type { WorkerProcess } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { holdsWithin } from '../../holds-within.ts'
import { interruptedBy } from '../../ledger/attempts.ts'
import type { Interruption } from '../../ledger/ledger.ts'
import { enqueueSteadily } from '../../ledger/load.ts'
import { secondWork, work } from '../../programs/catalogue.ts'
import type { Scale } from '../../report.ts'

/**
 * At these rates, 20 and 38 tasks run at a time, so that each fault interrupts some of them. After each fault, the next leader works for
 * `calmMs`, which is longer than the 1.5 s between two of its rounds.
 */
const PLANS = {
  small: {
    rounds: 1,
    processes: 3,
    concurrency: 10,
    ratePerSecond: 80,
    expiriesPerSecond: 5,
    pauseMs: 8_000,
    calmMs: 2_000,
  },
  full: {
    rounds: 5,
    processes: 4,
    concurrency: 50,
    ratePerSecond: 150,
    expiriesPerSecond: 20,
    pauseMs: 20_000,
    calmMs: 4_000,
  },
} as const

const FAULTS = ['kill', 'pause', 'cut'] as const
type Fault = (typeof FAULTS)[number]

const TASK_MS = 250
const QUEUE_TIMEOUT: CallOptions = { queueTimeout: '1s' }
/** Longer than the leader's lease and than a lock, as the pauses are. */
const CUT_MS = 8_000
const LEADER_WITHIN_MS = 60_000
const IDLE_WITHIN_MS = 120_000
const POLL_MS = 50

/** The sum of the lease of 3 s, the interval of 1.5 s between two checks of a queue, and half a second for the scripts. */
const EXPIRY_LATE_MS = 5_000
const RECOVERY_MS = 10_000

export const leader: Drill = {
  name: 'leader',
  target(scale) {
    const { rounds, concurrency } = PLANS[scale]
    // The tasks that were running in the worker may restart, and so may those that it was fetching.
    const most = rounds * FAULTS.length * 2 * concurrency
    return {
      text: `0 lost, 0 completed twice, metrics equal the ledger, 0 expired twice, expiries <= 5 s late, recovery p99 <= 10 s, restarts <= faults x 2 x concurrency (${most})`,
      atMost: {
        unexpired: 0,
        expiredTwice: 0,
        expiryLateMaxMs: EXPIRY_LATE_MS,
        notTakenOver: 0,
        restarted: most,
        effectsRepeated: most,
        attemptsUsed: 0,
        miscounted: 0,
        recoveryP99Ms: RECOVERY_MS,
      },
    }
  },
  known: undefined,
  comparable: false, // it has no leader
  run: (scale, _seed, system) => {
    const plan = PLANS[scale]
    const open = async () => ({ ...(await openRedis()), queues: [work.queue, secondWork.queue] })
    return withDrillSetup(system, { pools: { [work.queue]: plan.concurrency } }, (setup) => disturb(plan, setup), open)
  },
}

async function disturb(plan: (typeof PLANS)[Scale], setup: DrillSetup): Promise<Figures> {
  const { rounds, processes, ratePerSecond, expiriesPerSecond, pauseMs, calmMs } = plan
  const { redisUrl, broker, fleet, fencing, effects: readEffects, untilIdle, records } = setup
  const proxies = new Map<WorkerProcess, FaultProxy>()
  const start = async (): Promise<void> => {
    const proxy = await faultProxy(redisUrl)
    proxies.set(await fleet.start({ redisUrl: proxy.url }), proxy)
  }
  try {
    await Promise.all(Array.from({ length: processes }, start))
    let isOver = false
    const endless = { tasks: 1, more: () => !isOver }
    const enqueued = enqueueSteadily(broker, {
      ...endless,
      ratePerSecond,
      input: () => ({ ms: TASK_MS, listens: true }),
    })
    const doomed = enqueueSteadily(broker, {
      ...endless,
      ratePerSecond: expiriesPerSecond,
      definitions: [secondWork],
      input: () => ({ ms: 0, listens: false }),
      call: QUEUE_TIMEOUT,
    })
    const interruptions: Interruption[] = []
    let notTakenOver = 0
    for (const fault of Array.from({ length: rounds }, () => FAULTS).flat()) {
      const victim = await untilLed(setup)
      const before = await fencing()
      const at = await inflict(fault, victim, { proxy: proxies.get(victim), pauseMs })
      if (!(await holdsWithin(LEADER_WITHIN_MS, async () => (await fencing()) !== before))) notTakenOver++
      interruptions.push(
        ...interruptedBy(
          readEffects().filter((effect) => effect.at <= at),
          victim.name,
          at,
        ),
      )
      if (fault === 'kill') await start()
      await sleep(calmMs)
    }
    isOver = true
    const [accepted, timedOut] = await Promise.all([enqueued, doomed])
    await untilIdle(IDLE_WITHIN_MS)
    const { effects, failures, ...rest } = await records(accepted)
    const ends = await Promise.all(timedOut.map((id) => broker.find(id as TaskId)))
    const expired = ends.filter((task) => task?.status === 'expired')
    const late = expired.map((task) => (task?.endedAt ?? Number.POSITIVE_INFINITY) - (task?.enqueuedAt ?? 0) - 1_000)
    return {
      ...figuresOf({ accepted, effects, ...rest, interruptions, exits: [] }),
      unexpired: timedOut.length - expired.length,
      expiredTwice: timedOut.filter((id) => (failures.get(id) ?? 0) > 1).length,
      expiryLateMaxMs: late.length === 0 ? undefined : Math.max(...late),
      notTakenOver,
    }
  } finally {
    await Promise.all([...proxies.values()].map((proxy) => proxy.close()))
  }
}

/** @throws Error if no worker leads in time. */
async function untilLed({ leader }: DrillSetup): Promise<WorkerProcess> {
  const deadline = performance.now() + LEADER_WITHIN_MS
  while (performance.now() < deadline) {
    const found = await leader()
    if (found !== undefined) return found
    await sleep(POLL_MS)
  }
  throw new Error(`no worker has led the namespace within ${LEADER_WITHIN_MS} ms`)
}

/** Returns when the fault began, as unix time in ms. Resolves when the fault is over. */
async function inflict(
  fault: Fault,
  victim: WorkerProcess,
  { proxy, pauseMs }: { readonly proxy: FaultProxy | undefined; readonly pauseMs: number },
): Promise<number> {
  switch (fault) {
    case 'kill':
      return await victim.kill()
    case 'pause': {
      const at = Date.now()
      victim.pause()
      await sleep(pauseMs)
      victim.resume()
      return at
    }
    case 'cut': {
      const at = Date.now()
      proxy?.cut()
      await sleep(CUT_MS)
      proxy?.mend()
      return at
    }
  }
}
