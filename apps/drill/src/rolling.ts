// Drills `deploy` and `long`: every worker process is told to end and replaced, in turn, under load.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Exit, type Figures, figuresOf, handedBack } from './figures.ts'
import { enqueueSteadily, type Load, spanMs } from './load.ts'
import { momentsIn, randomFrom } from './random.ts'
import { type Baseline, type Report, reportOf, type Scale, type Target } from './report.ts'
import { onStage } from './stage.ts'

interface Plan {
  readonly processes: number
  readonly concurrency: number
  readonly restarts: number
  readonly load: Load
}

const LOADS = {
  deploy: () => ({ ms: 250, listens: false }),
  // Every other handler does not listen to its signal: it is handed back all the same, after the grace.
  long: (n: number) => ({ ms: 2_500, listens: n % 2 === 0 }),
} as const

const PLANS: Readonly<Record<keyof typeof LOADS, Readonly<Record<Scale, Plan>>>> = {
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
const EXIT_LATE_MS = 1_000
const BACK_IN_WORK_MS = 1_000
const QUIET_WITHIN_MS = 60_000

const EXITS: Target['atMost'] = {
  attemptsUsed: 0,
  exitsNotZero: 0,
  exitSlowestMs: DRAIN_TIMEOUT_MS + GRACE_MS + EXIT_LATE_MS,
}

export function deploy(scale: Scale, seed: number): Promise<Report> {
  return drill('deploy', scale, seed, {
    target: {
      text: '0 lost, 0 attempts used up, nothing restarted, every exit 0 and <= deadline + 1 s',
      atMost: { ...EXITS, restarted: 0 },
    },
    baseline: { lost: 0, from: 'BullMQ 6.7 at its defaults, not run here' },
  })
}

export function long(scale: Scale, seed: number): Promise<Report> {
  return drill('long', scale, seed, {
    target: {
      text: 'in work again <= 1 s after the hand back, 0 attempts used up, every exit 0 and <= deadline + 1 s',
      atMost: { ...EXITS, recoveryP99Ms: BACK_IN_WORK_MS },
    },
    baseline: { recoveryP99Ms: 57_700, from: 'BullMQ 6.7 at its defaults, not run here; it counts as a stall' },
  })
}

async function drill(
  name: keyof typeof PLANS,
  scale: Scale,
  seed: number,
  judge: { readonly target: Target; readonly baseline: Baseline },
): Promise<Report> {
  const figures = await restartInTurn(PLANS[name][scale], seed)
  return reportOf({ drill: name, scale, seed, ...judge }, figures)
}

async function restartInTurn({ processes, concurrency, restarts, load }: Plan, seed: number): Promise<Figures> {
  const config = {
    pools: { drill: concurrency },
    drainTimeout: `${DRAIN_TIMEOUT_MS}ms`,
    grace: `${GRACE_MS}ms`,
  } as const
  return onStage(config, async ({ broker, fleet, quiet, records }) => {
    await Promise.all(Array.from({ length: processes }, () => fleet.start()))
    const began = performance.now()
    const enqueued = enqueueSteadily(broker, load)
    const exits: Exit[] = []
    for (const moment of momentsIn(spanMs(load), restarts, randomFrom(seed))) {
      await sleep(Math.max(0, began + moment - performance.now()))
      const [oldest] = fleet.members
      if (oldest === undefined) throw new Error('there is no process to restart')
      // As a rolling update does: the new one is ready before the old one is told to end.
      await fleet.start()
      exits.push(await oldest.end())
    }
    const accepted = await enqueued
    await quiet(QUIET_WITHIN_MS)
    const { handBacks, ...rest } = await records(accepted)
    return figuresOf({ accepted, ...rest, interruptions: handedBack(handBacks, rest.effects), exits })
  })
}
