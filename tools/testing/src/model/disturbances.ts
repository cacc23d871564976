// Disturbs a program while it runs, with cancellations, lost locks, drains, crashes and outages.
import type { TaskId } from '@bullpen/contract'
import { rule } from './history.ts'
import type { Disturbance } from './program.ts'
import type { SimulatedWorker, Simulation } from './simulation.ts'

export interface Disturber {
  /** Whether the store is unreachable. */
  readonly isAway: () => boolean
  apply(disturbance: Disturbance): Promise<void>
  recover(): void
}

export function disturber({
  backend,
  history,
  drain,
  running: runningWorkers,
  startWorker,
  planned,
}: Simulation): Disturber {
  let away = false
  const recover = (): void => {
    away = false
    backend.outage?.end()
  }

  const onTask = async (disturbance: Disturbance & { task: number }): Promise<void> => {
    const pools = runningWorkers()
    const id = pick(tasksOf(pools), disturbance.task) ?? pick(planned(), disturbance.task)
    if (id === undefined) return
    if (disturbance.kind === 'cancel') for (const { pool } of pools) pool.cancel(id)
    else if (!away) {
      history.ownerLost(id)
      await backend.loseLock(id)
    }
  }

  /** Ends a worker, which is then replaced by a new one. */
  const onPool = async (disturbance: Disturbance & { pool: number }): Promise<void> => {
    const chosen = pick(runningWorkers(), disturbance.pool)
    if (chosen === undefined) return
    if (disturbance.kind === 'stop slot') return stopSlot(chosen, disturbance.slot, disturbance.how)
    // A worker that starts during an outage waits until the outage is over.
    if (away) return
    if (disturbance.kind === 'drain') drain(chosen, disturbance.drainMs)
    else if (disturbance.kind === 'close parent') {
      chosen.parent.abort()
      drain(chosen, 0)
    } else await kill(chosen)
    await startWorker()
  }

  const kill = async ({ name, pool }: SimulatedWorker): Promise<void> => {
    const lost = tasksOf([{ pool }])
    history.ownerLost(...lost)
    history.workerDied(name)
    await backend.kill(name, lost)
    // The worker's handlers cannot be ended. They continue to run, and their results are ignored.
    void pool.drain({ drainMs: 0, graceMs: 0 })
  }

  return {
    isAway: () => away,
    recover,
    async apply(disturbance) {
      if ('task' in disturbance) await onTask(disturbance)
      else if ('pool' in disturbance) await onPool(disturbance)
      else if (disturbance.kind === 'start worker' && !away) await startWorker()
      else if (disturbance.kind === 'fail consumers') backend.failConsumers?.()
      else if (disturbance.kind === 'recover') recover()
      else if (disturbance.kind === 'outage') {
        away = backend.outage !== undefined
        backend.outage?.begin()
      }
    },
  }
}

function stopSlot({ pool }: SimulatedWorker, slot: number, how: 'wait' | 'hard'): void {
  try {
    pool.stopSlot(slot, how)
  } catch (error) {
    rule(error instanceof Error && 'code' in error && error.code === 'wrong_state', String(error))
  }
}

function tasksOf(workers: readonly Pick<SimulatedWorker, 'pool'>[]): readonly TaskId[] {
  return workers.flatMap(({ pool }) => pool.slots().flatMap(({ task }) => (task ? [task.id as TaskId] : [])))
}

/** Picks an element by an index that wraps around. Returns undefined if the list is empty. */
function pick<T>(from: readonly T[], index: number): T | undefined {
  return from[index % Math.max(1, from.length)]
}
