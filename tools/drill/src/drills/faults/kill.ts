// Drills `kill` and `kill-cluster`: under load, workers are killed with SIGKILL at random times and replaced. In `kill-cluster`, the
// tasks are in three queues on the three nodes of a Redis Cluster.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drill } from '../../drill.ts'
import { type DrillRedis, openRedis, withDrillSetup } from '../../environment/drill-setup.ts'
import { openCluster } from '../../environment/redis-cluster.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { interruptedBy } from '../../ledger/attempts.ts'
import { enqueueSteadily, type Load, spanMs } from '../../ledger/load.ts'
import { momentsIn, pick, randomFrom } from '../../ledger/random.ts'
import { secondWork, thirdWork, type Work, work } from '../../programs/catalogue.ts'
import type { Scale } from '../../report.ts'

const PLANS = {
  small: { processes: 2, concurrency: 10, kills: 3, tasks: 400, ratePerSecond: 80 },
  full: { processes: 4, concurrency: 50, kills: 20, tasks: 100_000, ratePerSecond: 640 },
} as const

const TASK_MS = 250
const RECOVERY_MS = 10_000
const IDLE_WITHIN_MS = 120_000

const SPREAD: readonly Work[] = [work, secondWork, thirdWork]

const load = (scale: Scale): Load => ({ ...PLANS[scale], input: () => ({ ms: TASK_MS, listens: false }) })

export const kill: Drill = killOn('kill', [work], openRedis)
export const killCluster: Drill = {
  ...killOn('kill-cluster', SPREAD, () => openCluster(SPREAD.map(({ queue }) => queue))),
  comparable: false,
}

function killOn(name: string, definitions: readonly Work[], open: () => Promise<DrillRedis>): Drill {
  /** Returns the number of slots per queue. A worker's slots are divided among the queues. */
  const slotsPerQueue = (scale: Scale): number => Math.ceil(PLANS[scale].concurrency / definitions.length)
  return {
    name,
    target(scale) {
      const most = PLANS[scale].kills * slotsPerQueue(scale) * definitions.length
      return {
        text: `0 lost, 0 completed twice, metrics equal the ledger, restarts <= kills x concurrency (${most}), recovery p99 <= 10 s`,
        atMost: { restarted: most, effectsRepeated: most, attemptsUsed: 0, miscounted: 0, recoveryP99Ms: RECOVERY_MS },
      }
    },
    known: { lost: 0, restarted: 'kills x concurrency', recoveryP99Ms: 60_000 },
    comparable: true,
    /**
     * Runs the drill. Every second victim is the worker that leads the namespace and therefore looks for killed workers' tasks.
     */
    run(scale, seed, system) {
      const { processes, kills } = PLANS[scale]
      const random = randomFrom(seed)
      const pools = Object.fromEntries(definitions.map(({ queue }) => [queue, slotsPerQueue(scale)]))
      return withDrillSetup(
        system,
        { pools },
        async ({ broker, fleet, leader, nextStart, untilIdle, records }) => {
          await Promise.all(Array.from({ length: processes }, () => fleet.start()))
          const startedAt = performance.now()
          let killing = true
          const enqueued = enqueueSteadily(broker, { ...load(scale), definitions, more: () => killing })
          const replacements: Promise<unknown>[] = []
          const deaths: { readonly worker: string; readonly at: number }[] = []
          try {
            for (const moment of momentsIn(spanMs(load(scale)), kills, random)) {
              await sleep(Math.max(0, startedAt + moment - performance.now()))
              // Every worker may be dead before the first replacement is ready.
              if (fleet.workers.length === 0) await replacements.at(-1)
              const picked = pick(fleet.workers, random)
              const victim = (deaths.length % 2 === 0 ? await leader() : undefined) ?? picked
              // On a busy machine, the worker may not run a task yet.
              await nextStart(victim.name)
              deaths.push({ worker: victim.name, at: await victim.kill() })
              replacements.push(fleet.start())
            }
          } finally {
            killing = false
          }
          const [accepted] = await Promise.all([enqueued, ...replacements])
          await untilIdle(IDLE_WITHIN_MS)
          const { effects, ...rest } = await records(accepted)
          const interruptions = deaths.flatMap(({ worker, at }) => interruptedBy(effects, worker, at))
          return figuresOf({ accepted, effects, ...rest, interruptions, exits: [] })
        },
        open,
      )
    },
  }
}
