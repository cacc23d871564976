// Drills `deploy` and `long`: every worker process is told to end and replaced, in turn, under load.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drill } from '../drill.ts'
import { onStage } from '../drill-setup.ts'
import { cutShort, type Exit, type Figures, figuresOf, requeued } from '../ledger/figures.ts'
import { enqueueSteadily, type Load, spanMs } from '../ledger/load.ts'
import { momentsIn, randomFrom } from '../ledger/random.ts'
import type { Side } from '../programs/fleet.ts'
import type { Scale, Target } from '../report.ts'

interface Plan {
  readonly processes: number
  readonly concurrency: number
  readonly restarts: number
  readonly load: Load
}

const LOADS = {
  deploy: () => ({ ms: 250, listens: false }),
  // Every other handler does not listen to its signal: it is handed back all the same, after the grace.
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
  // Half of the slots are free: what is handed back has somewhere to go, so that its way back is what is measured.
  long: {
    small: { processes: 2, concurrency: 10, restarts: 2, load: { tasks: 12, ratePerSecond: 4, input: LOADS.long } },
    full: { processes: 4, concurrency: 50, restarts: 20, load: { tasks: 1_800, ratePerSecond: 30, input: LOADS.long } },
  },
}

const DRAIN_TIMEOUT_MS = 1_000
const GRACE_MS = 500
/** Then it is killed, as a platform does: an exit that was not in time has no code. */
const EXIT_AT_MOST_MS = DRAIN_TIMEOUT_MS + GRACE_MS + 1_000
const BACK_IN_WORK_MS = 1_000
const QUIET_WITHIN_MS = 120_000

const EXITS: Target['atMost'] = {
  attemptsUsed: 0,
  exitsNotZero: 0,
  exitSlowestMs: EXIT_AT_MOST_MS,
}

export const deploy: Drill = {
  name: 'deploy',
  target: () => ({
    text: '0 lost, 0 attempts used up, nothing restarted, every exit 0 and <= deadline + 1 s',
    atMost: { ...EXITS, restarted: 0 },
  }),
  known: { lost: 0 },
  comparable: true,
  run: (scale, seed, side) => restartInTurn(PLANS.deploy[scale], seed, side),
}

export const long: Drill = {
  name: 'long',
  target: () => ({
    text: 'in work again <= 1 s after the hand back, 0 attempts used up, every exit 0 and <= deadline + 1 s',
    atMost: { ...EXITS, recoveryP99Ms: BACK_IN_WORK_MS },
  }),
  known: { recoveryP99Ms: 57_700 },
  comparable: true,
  run: (scale, seed, side) => restartInTurn(PLANS.long[scale], seed, side),
}

async function restartInTurn(
  { processes, concurrency, restarts, load }: Plan,
  seed: number,
  side: Side,
): Promise<Figures> {
  const config = {
    pools: { drill: concurrency },
    drainTimeout: `${DRAIN_TIMEOUT_MS}ms`,
    grace: `${GRACE_MS}ms`,
  } as const
  return onStage(side, config, async ({ broker, fleet, nextStart, quiet, records }) => {
    await Promise.all(Array.from({ length: processes }, () => fleet.start()))
    const began = performance.now()
    const exits: Exit[] = []
    let restarting = true
    const enqueued = enqueueSteadily(broker, { ...load, more: () => restarting })
    try {
      for (const moment of momentsIn(spanMs(load), restarts, randomFrom(seed))) {
        await sleep(Math.max(0, began + moment - performance.now()))
        const [oldest] = fleet.members
        if (oldest === undefined) throw new Error('there is no process to restart')
        // As a rolling update does: the new one is ready before the old one is told to end.
        await fleet.start()
        // Then it has work in hand when it is told to end.
        await nextStart(oldest.name)
        exits.push(await oldest.end(EXIT_AT_MOST_MS))
      }
    } finally {
      restarting = false
    }
    const accepted = await enqueued
    await quiet(QUIET_WITHIN_MS)
    const { handBacks, effects, ...rest } = await records(accepted)
    const killed = exits.filter(({ code }) => code === null)
    const interruptions =
      killed.length === 0
        ? requeued(handBacks, effects)
        : killed.flatMap(({ process, at }) => cutShort(effects, process, at))
    return figuresOf({ accepted, effects, ...rest, interruptions, exits })
  })
}
