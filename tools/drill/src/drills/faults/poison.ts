// Drill `poison`: among normal tasks, some kill whatever process runs them. Workers that died are replaced, as a platform would.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Drill } from '../../drill.ts'
import { type DrillSetup, type Records, withDrillSetup } from '../../environment/drill-setup.ts'
import type { WorkerProcess } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { interruptedBy } from '../../ledger/attempts.ts'
import { enqueueOne, enqueueSteadily, type Load, spanMs } from '../../ledger/load.ts'
import { momentsIn, type Random, randomFrom, shuffled } from '../../ledger/random.ts'
import { PILLS, pill } from '../../programs/catalogue.ts'

const PLANS = {
  small: { processes: 2, concurrency: 10, rounds: 1, tasks: 150, ratePerSecond: 50 },
  full: { processes: 2, concurrency: 50, rounds: 2, tasks: 2_000, ratePerSecond: 100 },
} as const
type Plan = (typeof PLANS)[keyof typeof PLANS]

const TASK_MS = 100
const RECOVERY_MS = 10_000
const IDLE_WITHIN_MS = 120_000
const POLL_MS = 50
/** After this time, other workers may take over the tasks of a blocked worker. */
const STALL_LIMIT_MS = 1_000
/** How long a blocked worker is left alone before it is killed, as a liveness probe would do. */
const LIVENESS_MS = 6_000
/** A small heap makes running out of memory quick. */
const HEAP_MIB = 128

interface Death {
  readonly worker: string
  /** When its tasks could no longer end. */
  readonly at: number
}

export const poison: Drill = {
  name: 'poison',
  target(scale) {
    const { rounds, concurrency } = PLANS[scale]
    const pills = rounds * PILLS.length
    const most = pills * concurrency
    return {
      text: `0 other tasks dead, 0 attempts used up, ${pills} of ${pills} poison pills dead as poison or by their own timeout, recovery p99 <= 10 s`,
      atMost: { attemptsUsed: 0, pillsOutlived: 0, effectsRepeated: most, recoveryP99Ms: RECOVERY_MS },
    }
  },
  known: { innocentDead: '107 to 245, with 5 poison pills among 2,000 tasks' },
  comparable: false, // it has no tasks that end their worker
  run: (scale, seed, system) =>
    withDrillSetup(
      system,
      { pools: { drill: PLANS[scale].concurrency }, eventLoopStallLimit: `${STALL_LIMIT_MS}ms` },
      (setup) => takePills(PLANS[scale], setup, randomFrom(seed)),
    ),
}

async function takePills(plan: Plan, setup: DrillSetup, random: Random): Promise<Figures> {
  const { broker, untilIdle, records } = setup
  const supervisor = supervise(setup)
  await Promise.all(Array.from({ length: plan.processes }, supervisor.start))
  const accepted: string[] = []
  for (let round = 0; round < plan.rounds; round++) {
    const load: Load = { ...plan, input: () => ({ ms: TASK_MS, listens: false }) }
    const startedAt = performance.now()
    const enqueued = enqueueSteadily(broker, load)
    const moments = momentsIn(spanMs(load), PILLS.length, random)
    for (const [i, how] of shuffled(PILLS, random).entries()) {
      await sleep(Math.max(0, startedAt + (moments[i] ?? 0) - performance.now()))
      supervisor.took(how, await enqueueOne(broker, pill, { how }))
    }
    accepted.push(...(await enqueued))
    await untilIdle(IDLE_WITHIN_MS)
  }
  const { deaths, pills } = await supervisor.end()
  return figures(accepted, pills, deaths, await records(accepted))
}

/** Replaces each worker that has died, and kills those that a pill has blocked. */
function supervise({ fleet, effects }: DrillSetup) {
  const pills: string[] = []
  const loops: string[] = []
  const deaths: Death[] = []
  const workers = new Map<string, WorkerProcess>()
  const blocked = new Set<string>()
  const changes: Promise<unknown>[] = []
  let isOver = false

  const start = async (): Promise<void> => {
    const worker = await fleet.start({}, { heapMiB: HEAP_MIB })
    workers.set(worker.name, worker)
    void worker.exited.then(() => {
      if (isOver || blocked.has(worker.name)) return
      deaths.push({ worker: worker.name, at: Date.now() })
      changes.push(start())
    })
  }
  const replaceBlocked = async (name: string): Promise<void> => {
    changes.push(start())
    await sleep(LIVENESS_MS - STALL_LIMIT_MS)
    await workers.get(name)?.kill()
  }
  const watching = (async () => {
    while (!isOver) {
      // Only the first attempt of a task runs in the worker's own process.
      const starts = effects().filter(({ id, fencingToken }) => fencingToken === 1 && loops.includes(id))
      for (const { worker, at } of starts) {
        if (blocked.has(worker) || Date.now() < at + STALL_LIMIT_MS) continue
        blocked.add(worker)
        deaths.push({ worker, at: at + STALL_LIMIT_MS })
        changes.push(replaceBlocked(worker))
      }
      await sleep(POLL_MS)
    }
  })()

  return {
    start,
    took(how: (typeof PILLS)[number], id: string): void {
      pills.push(id)
      if (how === 'loop') loops.push(id)
    },
    async end() {
      isOver = true
      await watching
      for (let change = changes.shift(); change !== undefined; change = changes.shift()) await change
      return { deaths, pills }
    },
  }
}

function figures(
  accepted: readonly string[],
  pills: readonly string[],
  deaths: readonly Death[],
  { effects, ends, ...rest }: Records,
): Figures {
  const isPill = new Set(pills)
  const innocent = effects.filter(({ id }) => !isPill.has(id))
  const interruptions = deaths.flatMap(({ worker, at }) =>
    interruptedBy(
      innocent.filter((effect) => effect.at <= at),
      worker,
      at,
    ),
  )
  const reasons = pills.map((id) => {
    const end = ends.get(id)
    return end?.status === 'dead' ? end.attempts?.at(-1)?.reason : undefined
  })
  return {
    ...figuresOf({
      ...rest,
      accepted,
      effects: innocent,
      ends: new Map([...ends].filter(([id]) => !isPill.has(id))),
      interruptions,
      exits: [],
      // The counters of workers that have died are missing.
      counts: undefined,
    }),
    pills: pills.length,
    poisoned: reasons.filter((reason) => reason === 'poison').length,
    pillsOutlived: reasons.filter((reason) => reason !== 'poison' && reason !== 'run_timeout').length,
  }
}
