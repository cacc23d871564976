// Drill `kill`: under load, workers are killed with SIGKILL at random times and replaced.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drill } from '../drill.ts'
import { withDrillSetup } from '../drill-setup.ts'
import { figuresOf, interruptedBy } from '../ledger/figures.ts'
import { enqueueSteadily, type Load, spanMs } from '../ledger/load.ts'
import { momentsIn, pick, randomFrom } from '../ledger/random.ts'
import type { Scale } from '../report.ts'

const PLANS = {
  small: { processes: 2, concurrency: 10, kills: 3, tasks: 400, ratePerSecond: 80 },
  full: { processes: 4, concurrency: 50, kills: 20, tasks: 100_000, ratePerSecond: 640 },
} as const

const TASK_MS = 250
const RECOVERY_MS = 10_000
const IDLE_WITHIN_MS = 120_000

const load = (scale: Scale): Load => ({ ...PLANS[scale], input: () => ({ ms: TASK_MS, listens: false }) })

export const kill: Drill = {
  name: 'kill',
  target(scale) {
    const most = PLANS[scale].kills * PLANS[scale].concurrency
    return {
      text: `0 lost, 0 completed twice, restarts <= kills x concurrency (${most}), recovery p99 <= 10 s`,
      atMost: { restarted: most, effectsRepeated: most, attemptsUsed: 0, recoveryP99Ms: RECOVERY_MS },
    }
  },
  known: { lost: 0, restarted: 'kills x concurrency', recoveryP99Ms: 60_000 },
  comparable: true,
  run(scale, seed, system) {
    const { processes, concurrency, kills } = PLANS[scale]
    const random = randomFrom(seed)
    return withDrillSetup(system, { pools: { drill: concurrency } }, async ({ broker, fleet, untilIdle, records }) => {
      await Promise.all(Array.from({ length: processes }, () => fleet.start()))
      const startedAt = performance.now()
      const enqueued = enqueueSteadily(broker, load(scale))
      const replacements: Promise<unknown>[] = []
      const deaths: { readonly worker: string; readonly at: number }[] = []
      for (const moment of momentsIn(spanMs(load(scale)), kills, random)) {
        await sleep(Math.max(0, startedAt + moment - performance.now()))
        // Every worker may be dead before the first replacement is ready.
        if (fleet.workers.length === 0) await replacements.at(-1)
        const victim = pick(fleet.workers, random)
        deaths.push({ worker: victim.name, at: await victim.kill() })
        replacements.push(fleet.start())
      }
      const [accepted] = await Promise.all([enqueued, ...replacements])
      await untilIdle(IDLE_WITHIN_MS)
      const { effects, ...rest } = await records(accepted)
      const interruptions = deaths.flatMap(({ worker, at }) => interruptedBy(effects, worker, at))
      return figuresOf({ accepted, effects, ...rest, interruptions, exits: [] })
    })
  },
}
