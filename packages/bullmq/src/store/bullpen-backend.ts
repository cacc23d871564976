// The backend of BullMQ's Queues, Workers and FlowProducers that a team creates itself.
import type { Catalogue } from '@bullpen/contract'
import type { BackendFactory, IQueueBackend, KeyPrefixOptions, RedisQueueBackend } from 'bullmq'
import { isPrefixOf } from '../keys.ts'
import { limitsOf, storeLimits } from '../limits-of-queue.ts'
import type { ScriptRunner } from '../scripts/script.ts'
import { backendFactory, type LimitsStorer } from './backend.ts'

export interface BullpenBackendOptions<Other extends IQueueBackend> {
  /**
   * The catalogue of a Worker's processor, which Queues and FlowProducers do not need. The Worker stores what the catalogue limits in its
   * queue before it fetches its first job, as `createWorker` does: the limits of concurrency keys, permits, `concurrency` of definitions,
   * and circuit breakers. It stores them again within a minute of work after Redis has lost them. The catalogue of the worker that started
   * last applies.
   */
  readonly catalogue?: Catalogue
  /**
   * Makes the backend of every Queue, Worker and FlowProducer whose option `prefix` is not that of a queue of Bullpen's,
   * `{NAMESPACE.QUEUE}`. Pass BullMQ's `createRedisBackend` if the factory is the default one of a process with other queues. By default,
   * all of them get Bullpen's backend, whatever their prefixes.
   */
  readonly fallback?: BackendFactory<Other>
}

/** How often a Worker stores the limits that are missing in Redis, such as after it was flushed, in ms. */
const REPEAT_MS = 60_000

/**
 * Returns the factory of the backend that runs Bullpen's scripts, which is the last argument of BullMQ's constructors:
 *
 * ```ts
 * const worker = new Worker('email', processor(catalogue, handlers), options, bullpenBackend({ catalogue }))
 * const queue = new Queue('email', options, bullpenBackend())
 * const flows = new FlowProducer(options, bullpenBackend())
 * ```
 *
 * One factory can serve any number of them. Where you do not call the constructors yourself, as in NestJS, make it the default of the
 * process before they run: `setDefaultBackendFactory(bullpenBackend({ catalogue, fallback: createRedisBackend }))`.
 *
 * The scripts leave in Redis what BullMQ's own would and, in the same atomic step, the data that Bullpen keeps about each move of a task:
 * its status, the record of an attempt that was requeued, snoozed or lost, and the queue's totals. They use Redis's clock. A Worker's
 * attempts emit their events once Redis has run these scripts. A Worker whose processor is {@link processor} needs this backend, and its
 * catalogue if that limits anything in the queue. The backend is for Redis, whichever client BullMQ uses.
 *
 * The call neither throws nor sends anything. With a catalogue, the first fetch of a Worker waits for one more round trip. A fetch or an
 * end of a job takes one round trip, which those that are made at about the same time share. `queue.add`, `queue.addBulk` and `flows.add`
 * also take one, and reject if an id is the name of one of the queue's keys, such as `dead`, or if a delay is not finite.
 */
export function bullpenBackend<Other extends IQueueBackend = RedisQueueBackend>({
  catalogue,
  fallback,
}: BullpenBackendOptions<Other> = {}): BackendFactory<RedisQueueBackend | Other> {
  return (name, options, connections) => {
    // BullMQ passes all options, but its type has only those of any backend.
    const { prefix } = options as KeyPrefixOptions
    if (fallback !== undefined && !isPrefixOf(prefix, name)) return fallback(name, options, connections)
    const limitsStorer = catalogue && limitsStorerOf(catalogue, name)
    return backendFactory({ limitsStorer })(name, options, connections)
  }
}

/**
 * Returns a function that stores the limits of the queue. Its promise is that of the first time, if Redis has not replied yet: no job is
 * fetched before. A Worker that has nothing to do fetches every few seconds, so no timer is needed to repeat it.
 */
function limitsStorerOf(catalogue: Catalogue, queue: string): LimitsStorer {
  let storing: Promise<void> | undefined
  let storedAt: number | undefined
  const store = (run: ScriptRunner, base: string, replaces: boolean): Promise<void> => {
    const keys = { base, settings: `${base}settings`, breakers: `${base}breakers` }
    return storeLimits(run, keys, limitsOf(catalogue, queue), { replaces })
  }

  return (run, base) => {
    const now = performance.now()
    if (storedAt === undefined) {
      storing ??= store(run, base, true)
        .then(() => {
          storedAt = performance.now()
        })
        .finally(() => {
          storing = undefined
        })
      return storing
    }
    if (now - storedAt < REPEAT_MS) return undefined
    storedAt = now
    // If Redis cannot be reached, the fetch that follows fails as well, and reports it.
    store(run, base, false).catch(() => {})
    return undefined
  }
}
