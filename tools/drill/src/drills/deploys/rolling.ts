// Drills `deploy` and `long`: replace the workers one after the other with SIGTERM, under load.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drill } from '../../drill.ts'
import { withDrillSetup } from '../../environment/drill-setup.ts'
import type { System } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { interruptedBy, interruptedByRequeue } from '../../ledger/attempts.ts'
import type { Exit } from '../../ledger/ledger.ts'
import { enqueueSteadily, type Load, spanMs } from '../../ledger/load.ts'
import { momentsIn, randomFrom } from '../../ledger/random.ts'
import type { Scale, Target } from '../../report.ts'

interface Plan {
  readonly processes: number
  readonly concurrency: number
  readonly restarts: number
  readonly load: Load
}

const LOADS = {
  deploy: () => ({ ms: 250, listens: false }),
  // Every second handler ignores its signal, so its task is requeued after the grace period.
  long: (n: number) => ({ ms: 3_000, listens: n % 2 === 0 }),
} as const

const PLANS: Readonly<Record<'deploy' | 'long', Readonly<Record<Scale, Plan>>>> = {
  deploy: {
    small: { processes: 2, concurrency: 10, restarts: 2, load: { tasks: 200, ratePerSecond: 60, input: LOADS.deploy } },
    full: {
      processes: 4,
      concurrency: 50,
      restarts: 20,
      load: { tasks: 30_000, ratePerSecond: 500, input: LOADS.deploy },
    },
  },
  // Half of the slots are free, so that the measured time is only that of the requeue.
  long: {
    small: { processes: 2, concurrency: 10, restarts: 2, load: { tasks: 12, ratePerSecond: 4, input: LOADS.long } },
    full: { processes: 4, concurrency: 50, restarts: 20, load: { tasks: 1_800, ratePerSecond: 30, input: LOADS.long } },
  },
}

const DRAIN_TIMEOUT_MS = 1_000
const GRACE_MS = 500
const EXIT_AT_MOST_MS = DRAIN_TIMEOUT_MS + GRACE_MS + 1_000
/**
 * After this time the worker is killed, as a platform would do, and its exit has no code. At small scale, other tests run at the same time
 * and delay the exit, which is then judged as a time.
 */
const KILL_AFTER_MS: Readonly<Record<Scale, number>> = { small: 30_000, full: EXIT_AT_MOST_MS }
const BACK_IN_WORK_MS = 1_000
const IDLE_WITHIN_MS = 120_000

const EXITS: Target['atMost'] = {
  attemptsUsed: 0,
  miscounted: 0,
  exitsNotZero: 0,
  exitSlowestMs: EXIT_AT_MOST_MS,
}

export const deploy: Drill = {
  name: 'deploy',
  target: () => ({
    text: '0 lost, 0 attempts used up, nothing restarted, metrics equal the ledger, every exit with 0 and <= drain timeout + grace + 1 s',
    atMost: { ...EXITS, restarted: 0 },
  }),
  known: { lost: 0 },
  comparable: true,
  run: (scale, seed, system) =>
    restartInTurn({ ...PLANS.deploy[scale], killAfterMs: KILL_AFTER_MS[scale] }, seed, system),
}

export const long: Drill = {
  name: 'long',
  target: () => ({
    text: 'running again <= 1 s after the requeue, 0 attempts used up, metrics equal the ledger, every exit with 0 and <= drain timeout + grace + 1 s',
    atMost: { ...EXITS, recoveryP99Ms: BACK_IN_WORK_MS },
  }),
  known: { recoveryP99Ms: 57_700 },
  comparable: true,
  run: (scale, seed, system) =>
    restartInTurn({ ...PLANS.long[scale], killAfterMs: KILL_AFTER_MS[scale] }, seed, system),
}

async function restartInTurn(
  { processes, concurrency, restarts, load, killAfterMs }: Plan & { readonly killAfterMs: number },
  seed: number,
  system: System,
): Promise<Figures> {
  const config = {
    pools: { drill: concurrency },
    drainTimeout: `${DRAIN_TIMEOUT_MS}ms`,
    grace: `${GRACE_MS}ms`,
  } as const
  return withDrillSetup(system, config, async ({ broker, fleet, nextStart, untilIdle, records }) => {
    await Promise.all(Array.from({ length: processes }, () => fleet.start()))
    const startedAt = performance.now()
    const exits: Exit[] = []
    let restarting = true
    const enqueued = enqueueSteadily(broker, { ...load, more: () => restarting })
    try {
      for (const moment of momentsIn(spanMs(load), restarts, randomFrom(seed))) {
        await sleep(Math.max(0, startedAt + moment - performance.now()))
        const [oldest] = fleet.workers
        if (oldest === undefined) throw new Error('no worker is left to restart')
        // As in a rolling update, the new worker is ready before the old one receives its signal to shut down.
        await fleet.start()
        // Waiting for a start ensures that the worker is running tasks when it receives its signal to shut down.
        await nextStart(oldest.name)
        exits.push(await oldest.end(killAfterMs))
      }
    } finally {
      restarting = false
    }
    const accepted = await enqueued
    await untilIdle(IDLE_WITHIN_MS)
    const { requeues, effects, ...rest } = await records(accepted)
    const killed = exits.filter(({ code }) => code === null)
    const interruptions =
      killed.length === 0
        ? interruptedByRequeue(requeues, effects)
        : killed.flatMap(({ worker, at }) => interruptedBy(effects, worker, at))
    return figuresOf({ accepted, effects, ...rest, interruptions, exits })
  })
}
