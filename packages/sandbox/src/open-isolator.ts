// The isolator: a pool of threads and a pool of child processes behind the engine's port.
import { BullpenError, type Log } from '@bullpen/contract'
import type { Clock, Isolator, Random } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { childStarter } from './isolate/child-process.ts'
import { IsolatePool, type Max, type Replaced } from './isolate/isolate-pool.ts'
import { openOrphanReaper } from './isolate/orphan-reaper.ts'
import { canReadResident, readResident } from './isolate/resident-memory.ts'
import { startThread } from './isolate/thread.ts'

export interface IsolatorOptions {
  /** `max`: the most threads at a time. A function is called whenever one might be started. */
  readonly threads: { readonly max: Max }
  readonly processes: { readonly max: Max }
  /**
   * URL of the module whose default export is a record of resource openers (`{ open, close? }`). Opened once in each
   * thread or process, before its first task; closed in reverse order when it ends, unless it is killed.
   */
  readonly resources?: string | undefined
  /** For what belongs to no running task: late errors, resources that fail to open or close. */
  readonly log: Log
  readonly clock?: Clock
  readonly random?: Random
  /** A thread or process without a task ends after this time, in ms. Default: 30,000. */
  readonly idleMs?: number
  /** Called for every isolate that ended for another reason than idleness or `close`. Must neither throw nor wait. */
  readonly onReplaced?: (event: Replaced) => void
}

/**
 * Starts nothing yet: isolates are started when tasks need them. Tasks for which none is free wait, and their timeout runs
 * meanwhile. A run that has not started when the isolator is closed ends as `closed` (`parent_closed`).
 *
 * @throws BullpenError `invalid_configuration` when a `max` is not a whole number from 1. `run` throws
 * `invalid_definition` for a thread with a memory limit: V8 may abort the whole process when a thread's memory runs out.
 */
export function openIsolator(options: IsolatorOptions): Isolator {
  const { clock = systemClock, random = Math.random, log, resources, idleMs = 30_000, onReplaced = () => {} } = options
  const common = { clock, random, log, resources, idleMs, onReplaced }
  const threads = new IsolatePool({
    ...common,
    isolation: 'thread',
    max: options.threads.max,
    startIsolate: startThread,
    reportMemory: false,
  })
  const reaper = openOrphanReaper((err) =>
    log.warn({ err }, 'orphan reaper unavailable: if this worker is killed, child processes in a loop keep running'),
  )
  const processes = new IsolatePool({
    ...common,
    isolation: 'process',
    max: options.processes.max,
    startIsolate: childStarter(reaper, readResident),
    reportMemory: !canReadResident,
  })
  return {
    isolations: ['thread', 'process'],
    run(task, calls) {
      if (task.isolation === 'thread' && task.memoryLimitBytes !== undefined) {
        throw new BullpenError(
          'invalid_definition',
          `task ${task.task}: a thread can't have a memory limit; use isolation: 'process'`,
        )
      }
      return (task.isolation === 'thread' ? threads : processes).run(task, calls)
    },
    async close() {
      await Promise.all([threads.close(), processes.close()])
      await reaper.close()
    },
  }
}
