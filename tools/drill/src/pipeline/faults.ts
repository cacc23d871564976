// Disturbs a run of a pipeline: kills workers, among them the leader, and stops one of them for longer than its locks last.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillSetup } from '../environment/drill-setup.ts'
import type { WorkerProcess } from '../environment/fleet.ts'
import { pauseWhen } from '../environment/paused-worker.ts'
import { holdsWithin } from '../holds-within.ts'
import { interruptedBy } from '../ledger/attempts.ts'
import type { Interruption } from '../ledger/ledger.ts'
import { momentsIn, pick, type Random, shuffled } from '../ledger/random.ts'

export interface Faults {
  /** How many workers are killed at random, and how many leaders. */
  readonly kills: number
  readonly leaderKills: number
  /** How long a worker is stopped, in ms. */
  readonly stopMs: number
}

/** What the faults have done to a run. */
export interface Disturbance {
  /** The attempts that were interrupted. */
  readonly interruptions: readonly Interruption[]
  /** Faults that have interrupted no attempt. */
  readonly faultsWithoutEffect: number
}

export interface DisturbedRun {
  readonly setup: DrillSetup
  readonly random: Random
  /** Returns how many attempts of the run have started. */
  readonly started: () => number
  /** Returns whether the run has ended, so that no fault waits for its tasks any more. */
  readonly hasEnded: () => boolean
}

type Fault = 'kill' | 'kill leader' | 'stop'

/**
 * How long a fault waits for a worker that runs a task. After another fault, an ordered run may stand still until its items are
 * recovered.
 */
const WITHIN_MS = 30_000

/**
 * Inflicts the faults, those of leaders first and the others in a random order, each when a random number of attempts below `span` has
 * started, so that no fault comes too late on a fast machine, or too early on a slow one. A worker is killed or stopped as soon as it runs
 * a task. Resolves when every killed worker has been replaced and the stopped one goes on.
 */
export async function inflict(
  { kills, leaderKills, stopMs }: Faults,
  span: number,
  { setup, random, started, hasEnded }: DisturbedRun,
): Promise<Disturbance> {
  const { fleet, leader, effects } = setup
  const interruptions: Interruption[] = []
  let faultsWithoutEffect = 0
  const rest: Promise<unknown>[] = []
  let stopped: WorkerProcess | undefined
  const others = (): readonly WorkerProcess[] => fleet.workers.filter((worker) => worker !== stopped)

  /** Pauses one of these workers while it runs a task, or any of them if none does so in time. */
  const pauseAtWork = async (choose: () => Promise<WorkerProcess | undefined>): Promise<WorkerProcess> => {
    const look = ({ name }: WorkerProcess): readonly Interruption[] | undefined => {
      const running = interruptedBy(effects(), name, Date.now())
      return running.length > 0 || hasEnded() ? running : undefined
    }
    const { worker, found: running = [] } = await pauseWhen(choose, look, WITHIN_MS)
    if (running.length === 0) faultsWithoutEffect++
    interruptions.push(...running)
    return worker
  }
  const anyOther = async (): Promise<WorkerProcess | undefined> =>
    others().length === 0 ? undefined : pick(others(), random)
  const leading = async (): Promise<WorkerProcess | undefined> => {
    const found = await leader()
    return found === stopped ? undefined : found
  }

  const kill = async (choose: () => Promise<WorkerProcess | undefined>): Promise<void> => {
    await (await pauseAtWork(choose)).kill()
    rest.push(fleet.start())
  }
  const act: Readonly<Record<Fault, () => Promise<void>>> = {
    kill: () => kill(anyOther),
    'kill leader': () => kill(leading),
    async stop() {
      const victim = await pauseAtWork(anyOther)
      stopped = victim
      rest.push(sleep(stopMs).then(() => victim.resume()))
    },
  }

  // After any other fault, there may be no leader for as long as its lease lasts, in which a small run ends.
  const faults: readonly Fault[] = [
    ...Array<Fault>(leaderKills).fill('kill leader'),
    ...shuffled<Fault>(['stop', ...Array<Fault>(kills).fill('kill')], random),
  ]
  const moments = momentsIn(span, faults.length, random)
  for (const [n, fault] of faults.entries()) {
    await holdsWithin(WITHIN_MS, () => hasEnded() || started() >= (moments[n] ?? 0))
    await act[fault]()
  }
  await Promise.all(rest)
  return { interruptions, faultsWithoutEffect }
}
