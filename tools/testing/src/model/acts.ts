// What happens from outside while a program runs.
import type { TaskId } from '@bullpen/contract'
import { rule } from './history.ts'
import type { Act } from './program.ts'
import type { Process, World } from './world.ts'

export interface Stage {
  /** The store can't be reached now. */
  readonly isAway: () => boolean
  happen(act: Act): Promise<void>
  recover(): void
}

export function actsOn({ backend, chronicle, drain, living, openProcess, planned }: World): Stage {
  let away = false
  const recover = (): void => {
    away = false
    backend.outage?.end()
  }

  const onTask = async (act: Act & { task: number }): Promise<void> => {
    const pools = living()
    const id = pick(running(pools), act.task) ?? pick(planned(), act.task)
    if (id === undefined) return
    if (act.act === 'cancel') for (const { pool } of pools) pool.cancel(id)
    else if (!away) {
      chronicle.tookFromOwner(id)
      await backend.loseLock(id)
    }
  }

  /** Another process takes the place of one that ends. */
  const onPool = async (act: Act & { pool: number }): Promise<void> => {
    const chosen = pick(living(), act.pool)
    if (chosen === undefined) return
    if (act.act === 'stop worker') return stopWorker(chosen, act.worker, act.how)
    // A process that starts while the store is away waits for it.
    if (away) return
    if (act.act === 'drain') drain(chosen, act.drainMs)
    else if (act.act === 'close parent') {
      chosen.parent.abort()
      drain(chosen, 0)
    } else await kill(chosen)
    await openProcess()
  }

  const kill = async ({ name, pool }: Process): Promise<void> => {
    const lost = running([{ pool }])
    chronicle.tookFromOwner(...lost)
    chronicle.died(name)
    await backend.kill(name, lost)
    // In a test its handlers live on; nothing of them counts.
    void pool.drain({ drainMs: 0, graceMs: 0 })
  }

  return {
    isAway: () => away,
    recover,
    async happen(act) {
      if ('task' in act) await onTask(act)
      else if ('pool' in act) await onPool(act)
      else if (act.act === 'join' && !away) await openProcess()
      else if (act.act === 'break feeds') backend.breakFeeds?.()
      else if (act.act === 'recover') recover()
      else if (act.act === 'outage') {
        away = backend.outage !== undefined
        backend.outage?.begin()
      }
    },
  }
}

function stopWorker({ pool }: Process, worker: number, how: 'wait' | 'hard'): void {
  try {
    pool.stopSlot(worker, how)
  } catch (error) {
    rule(error instanceof Error && 'code' in error && error.code === 'wrong_state', String(error))
  }
}

function running(processes: readonly Pick<Process, 'pool'>[]): readonly TaskId[] {
  return processes.flatMap(({ pool }) => pool.slots().flatMap(({ task }) => (task ? [task.id as TaskId] : [])))
}

/** Counted round; undefined of none. */
function pick<T>(of: readonly T[], index: number): T | undefined {
  return of[index % Math.max(1, of.length)]
}
