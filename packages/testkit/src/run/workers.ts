// The workers in memory that run one task. Each of them can be killed, drained or paused, and another one can be added.
import type { TaskEvent } from '@bullpen/contract'
import type { Pool } from '@bullpen/engine/internal'
import type { MemoryBroker } from '../memory/memory-broker-options.ts'

export interface TestWorker {
  readonly pool: Pool
  /** Kills the worker, as SIGKILL would. It no longer reports anything, and its tasks are recovered. */
  kill(): void
}

/** What a pool reports to its worker. */
export interface WorkerReports {
  readonly event: (event: TaskEvent) => void
  /** Reports that the pool is about to run the attempt with this fencing token. */
  readonly started: (fencingToken: number) => void
}

export interface Workers {
  /** The events of all workers, in order. */
  readonly events: readonly TaskEvent[]
  /** Returns the worker that was added last. */
  newest(): TestWorker
  /** Returns the worker that runs or ran an attempt. */
  of(fencingToken: number): TestWorker
  /** Adds a worker. Resolves when its pool is started. */
  add(): Promise<void>
}

export function createWorkers(
  broker: Pick<MemoryBroker, 'kill'>,
  openPool: (name: string, reports: WorkerReports) => Pool,
): Workers {
  const events: TaskEvent[] = []
  const workers: TestWorker[] = []
  const byAttempt = new Map<number, TestWorker>()

  const open = (name: string): TestWorker => {
    let isDead = false
    const pool = openPool(name, {
      event(event) {
        // A dead worker reports nothing.
        if (!isDead) events.push(event)
      },
      started: (fencingToken) => void byAttempt.set(fencingToken, worker),
    })
    const worker: TestWorker = {
      pool,
      kill() {
        isDead = true
        broker.kill(name)
      },
    }
    return worker
  }
  const known = (worker: TestWorker | undefined): TestWorker => {
    if (worker === undefined) throw new Error('no worker has been added yet')
    return worker
  }

  return {
    events,
    newest: () => known(workers.at(-1)),
    of: (fencingToken) => known(byAttempt.get(fencingToken)),
    async add() {
      const worker = open(`memory:${workers.length + 1}`)
      workers.push(worker)
      await worker.pool.start()
    },
  }
}
