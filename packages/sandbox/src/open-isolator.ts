// Implements the engine's isolator port with a pool of threads and a pool of child processes.
import { BullpenError, type Log } from '@bullpen/contract'
import type { Clock, Isolator, Random } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { childStarter } from './isolate/child-process.ts'
import { IsolatePool, type Max, type Replaced } from './isolate/isolate-pool.ts'
import { canReadResident, readResident } from './isolate/memory-limit.ts'
import { openOrphanReaper } from './isolate/orphan-reaper.ts'
import { startThread } from './isolate/thread.ts'

export interface IsolatorOptions {
  /** `max` is the maximum number of threads at a time. If it is a function, it is called whenever a thread might be started. */
  readonly threads: { readonly max: Max }
  readonly processes: { readonly max: Max }
  /**
   * The URL of the module whose default export is a record of resource openers (`{ open, close? }`). The resources are opened
   * once in each thread or process, before its first task. They are closed in reverse order when it ends, unless it is killed.
   */
  readonly resources?: string | undefined
  /** Receives log lines that do not belong to a running task: late errors, and resources that fail to open or close. */
  readonly log: Log
  readonly clock?: Clock
  readonly random?: Random
  /** How long a thread or process may be idle before it is ended, in ms. Defaults to 30,000. */
  readonly idleMs?: number
  /** Called for every isolate that ended for a reason other than idleness or `close`. The callback must not throw or block. */
  readonly onReplaced?: (event: Replaced) => void
}

export interface PreparingIsolator extends Isolator {
  /** Returns how many child processes are ready and have no task. */
  idleProcesses(): number
  /** Starts a child process for a later task with this memory limit, unless {@link MAX_STARTING} processes are starting. */
  prepareProcess(memoryLimitBytes: number | undefined): void
}

/**
 * How many child processes are prepared at once. Starting one takes the processor for several hundred milliseconds, and after a
 * worker's death, each of the other workers has tasks to quarantine. If these are short, a few processes run them sooner than many
 * could be started.
 */
const MAX_STARTING = 2

/**
 * Creates an isolator without starting anything. Isolates are started when tasks need them. If no isolate is free, a task waits
 * for one, and its timeout keeps running. A run that has not started when the isolator is closed ends as `closed`
 * (`parent_closed`).
 *
 * @throws BullpenError `invalid_configuration` if a `max` is not a whole number of at least 1. `run` throws `invalid_definition`
 * for a thread with a memory limit, because V8 may abort the whole process when a thread runs out of memory.
 */
export function openIsolator(options: IsolatorOptions): PreparingIsolator {
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
    log.warn(
      { err },
      'orphan reaper unavailable: if this worker is killed, child processes that are stuck in a loop and programs of handlers keep running',
    ),
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
    idleProcesses: () => processes.idle(),
    prepareProcess: (memoryLimitBytes) => processes.prepare(memoryLimitBytes, MAX_STARTING),
    async close() {
      await Promise.all([threads.close(), processes.close()])
      await reaper.close()
    },
  }
}
