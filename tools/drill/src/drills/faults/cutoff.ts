// Drill `cutoff`: cuts one worker off from Redis for longer than its locks last, while the others stay connected.
import { setTimeout as sleep } from 'node:timers/promises'
import { faultProxy } from '@bullpen/testkit'
import type { Drill } from '../../drill.ts'
import { withDrillSetup } from '../../environment/drill-setup.ts'
import type { System } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { interruptedBy, restartsOf, runningWithin, signalsAfter } from '../../ledger/attempts.ts'
import { type Effect, wallMs } from '../../ledger/effects.ts'
import { enqueueSteadily, type Load } from '../../ledger/load.ts'
import { momentsIn, randomFrom } from '../../ledger/random.ts'
import type { Scale } from '../../report.ts'

/**
 * Returns the input of the n-th task. Most tasks are shorter than the 5 s that a lock lasts. The longer ones have to be signalled
 * in the worker that was cut off.
 */
const input = (n: number) => ({ ms: n % 8 === 0 ? 7_000 : 250, againMs: 250, listens: true })

/** A task that has been running for this long is one of the longer ones. */
const SURELY_LONG_MS = 1_000
const LONG_WITHIN_MS = 60_000
const POLL_MS = 50

/** How long a lock lasts in every worker. */
const LOCK_MS = 5_000

const PLANS = {
  small: { reachable: 1, concurrency: 20, cuts: 1, cutMs: 8_000, everyMs: 4_000, ratePerSecond: 40 },
  full: { reachable: 3, concurrency: 50, cuts: 5, cutMs: 10_000, everyMs: 15_000, ratePerSecond: 150 },
} as const

const RECOVERY_MS = 10_000
const IDLE_WITHIN_MS = 120_000

export const cutoff: Drill = {
  name: 'cutoff',
  target(scale) {
    // At each cut, the tasks that were running in the worker may restart, and so may those that it was fetching.
    const most = PLANS[scale].cuts * 2 * PLANS[scale].concurrency
    return {
      text: `0 lost, 0 completed twice, 0 attempts used up, metrics equal the ledger, restarts <= cuts x 2 x concurrency (${most}), recovery p99 <= 10 s, attempts signalled <= 5 s after the cut, and no other task restarted`,
      atMost: {
        restarted: most,
        effectsRepeated: most,
        attemptsUsed: 0,
        miscounted: 0,
        recoveryP99Ms: RECOVERY_MS,
        signalSlowestMs: LOCK_MS,
        restartedUnaffected: 0,
      },
    }
  },
  known: { attemptsPerTask: 2, effectsPerTask: 2, duplicated: 0 },
  comparable: false, // its locks last 30 s, longer than the cut
  run: (scale, seed, system) => cutOff(PLANS[scale], seed, system),
}

async function cutOff(plan: (typeof PLANS)[Scale], seed: number, system: System): Promise<Figures> {
  const { reachable, concurrency, cuts, cutMs, everyMs, ratePerSecond } = plan
  const tasks = (cuts * everyMs * ratePerSecond) / 1_000
  const load: Load = { tasks, ratePerSecond, input }
  const random = randomFrom(seed)
  return withDrillSetup(
    system,
    { pools: { drill: concurrency } },
    async ({ redisUrl, broker, fleet, untilIdle, effects: effectsSoFar, records }) => {
      const proxy = await faultProxy(redisUrl)
      try {
        await Promise.all(Array.from({ length: reachable }, () => fleet.start()))
        const victim = await fleet.start({ redisUrl: proxy.url })
        const startedAt = performance.now()
        let waitsForCut = true
        const enqueued = enqueueSteadily(broker, { ...load, more: () => waitsForCut })
        const moments: number[] = []
        try {
          for (let cut = 0; cut < cuts; cut++) {
            const [moment = 0] = momentsIn(everyMs - (cuts > 1 ? cutMs : 0), 1, random)
            await sleep(Math.max(0, startedAt + cut * everyMs + moment - performance.now()))
            // On a busy machine, the worker may not have started a task by now that has to be signalled.
            await untilRunsLong(() => effectsSoFar().filter(({ worker }) => worker === victim.name))
            if (cut === cuts - 1) waitsForCut = false
            moments.push(Date.now())
            proxy.cut()
            await sleep(cutMs)
            proxy.mend()
          }
        } finally {
          waitsForCut = false
        }
        const accepted = await enqueued
        await untilIdle(IDLE_WITHIN_MS)
        const { effects, ...rest } = await records(accepted)
        const interruptions = moments.flatMap((at) =>
          interruptedBy(
            effects.filter((effect) => effect.at <= at),
            victim.name,
            at,
          ),
        )
        const signals = moments.flatMap((at) => signalsAfter(effects, victim.name, at, LOCK_MS))
        // An attempt that ended shortly before the cut is affected too if Redis did not get its commit, which it refuses once the lock has
        // expired.
        const cut = new Set(moments.flatMap((at) => [...runningWithin(effects, victim.name, at - LOCK_MS, at + cutMs)]))
        return {
          ...figuresOf({ accepted, effects, ...rest, interruptions, exits: [], signals }),
          restartedUnaffected: restartsOf(effects.filter(({ id }) => !cut.has(id))),
        }
      } finally {
        await proxy.close()
      }
    },
  )
}

/**
 * Resolves when a worker with these effects runs a task that no short task can be. @throws Error if none runs within a minute, because the
 * cut would then signal nothing.
 */
async function untilRunsLong(effects: () => readonly Effect[]): Promise<void> {
  const deadline = performance.now() + LONG_WITHIN_MS
  while (performance.now() < deadline) {
    const open = new Map<string, Effect>()
    for (const effect of effects()) {
      if (effect.what === 'start') open.set(effect.id, effect)
      else open.delete(effect.id)
    }
    if ([...open.values()].some(({ at }) => wallMs() - at > SURELY_LONG_MS)) return
    await sleep(POLL_MS)
  }
  throw new Error(`the worker has run no long task within ${LONG_WITHIN_MS} ms`)
}
