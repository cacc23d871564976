// Refuses a task that some live worker of its queue could not start, because the worker is too old. During a rolling update,
// this keeps tasks with a concurrency key, and tasks that need permits or depend on services, out of a queue until all of its
// workers run them correctly.
import { BullpenError, type Log } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { isAlive, type RegisteredWorker } from '@bullpen/engine/internal'
import type { Feature } from '../fleet/features.ts'
import { readWorkers } from '../fleet/registry.ts'
import { fleetKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'

export interface FleetFeatures {
  /**
   * Returns undefined if each live worker of the task's queue can start the task. If the workers must be read first, which takes a round
   * trip for every hundred of them, returns a promise. A task without a lane is not checked.
   *
   * @throws BullpenError `fleet_too_old`. The promise rejects with the same error.
   */
  admit(task: Pick<NewTask, 'queue' | 'turn' | 'needs' | 'services'>): Promise<void> | undefined
}

/** How long the workers are known after they were read, in ms. */
const KNOWN_MS = 5_000

/** How many workers an error names. */
const NAMED = 3

export function createFleetFeatures(options: {
  readonly redis: Commander
  readonly namespace: string
  readonly log: Log
}): FleetFeatures {
  const { redis, namespace, log } = options
  const keys = fleetKeys(namespace)
  let known: readonly RegisteredWorker[] = []
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  async function read(): Promise<void> {
    const { workers, now } = await readWorkers(redis, keys, '', log)
    known = workers.filter((worker) => isAlive(worker, now))
    readAt = performance.now()
  }

  return {
    admit({ queue, turn, needs, services }) {
      if (turn === undefined && needs === undefined && services === undefined) return undefined
      // A worker that knows breakers knows limiters, and one that knows limiters knows turns.
      const assert = (): void => {
        if (services !== undefined) assertAll(known, queue, 'breakers')
        else assertAll(known, queue, needs === undefined ? 'turns' : 'limiters')
      }
      if (performance.now() - readAt < KNOWN_MS) {
        assert()
        return undefined
      }
      reading ??= read().finally(() => {
        reading = undefined
      })
      return reading.then(assert)
    },
  }
}

const REASONS: Readonly<Record<Feature, (queue: string) => string>> = {
  turns: (queue) => `queue '${queue}' has fairness`,
  limiters: (queue) => `the task's definition in queue '${queue}' has permits or concurrency`,
  breakers: (queue) => `the task depends on a circuit breaker of queue '${queue}'`,
}

const REMEDIES: Readonly<Record<Feature, string>> = {
  turns: 'upgrade them, or enqueue the task without a concurrency key',
  limiters: 'upgrade them',
  breakers: 'upgrade them',
}

function assertAll(workers: readonly RegisteredWorker[], queue: string, feature: Feature): void {
  const old = workers.filter(
    ({ pools, features = [] }) => !features.includes(feature) && pools.some((pool) => pool.queue === queue),
  )
  if (old.length === 0) return
  const named = old.slice(0, NAMED).map(({ worker, version }) => `${worker} (Bullpen ${version})`)
  const others = old.length > NAMED ? ` and ${old.length - NAMED} more` : ''
  throw new BullpenError(
    'fleet_too_old',
    `${REASONS[feature](queue)}, but some of the queue's workers are too old to support that: ${named.join(', ')}${others}; ${REMEDIES[feature]}`,
  )
}
