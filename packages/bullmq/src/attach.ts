// Gives Bullpen's scripts to BullMQ objects that a team creates itself.
import type { Catalogue } from '@bullpen/contract'
import type { RedisClient } from 'bullmq'
import { composeBackend, isComposed, isRedisBackend, prepareFetches } from './internals/composition/backend.ts'
import { attachedWorkerId } from './internals/worker/attached-worker-id.ts'
import { limitsOf, storeLimits } from './limits-of-queue.ts'
import { runnerOnClient } from './scripts/script.ts'

/** A BullMQ Worker, Queue or FlowProducer. */
export interface Attachable {
  /** The queue's name. A FlowProducer has none. */
  readonly name?: string
  getBackend(): object
}

export interface AttachOptions {
  /**
   * The catalogue of the Worker's processor. The Worker stores what the catalogue limits in its queue before it fetches its
   * first job, as `createWorker` does: the limits of concurrency keys, permits, `concurrency` of definitions, and circuit
   * breakers. If the catalogue limits something in the queue, the processor refuses the jobs of a Worker that was attached
   * without it.
   */
  readonly catalogue?: Catalogue
}

/** How often a Worker stores the limits that are missing in Redis, such as after it was flushed, in ms. */
const REPEAT_MS = 60_000

/**
 * Makes the scripts of a Worker, Queue or FlowProducer also store the data that Bullpen keeps about each move of a task: the
 * task's status, the record of an attempt that was requeued, snoozed or lost, and the queue's totals. A Worker's attempts emit
 * their events once Redis has run these scripts. A Worker whose processor is {@link processor} must be attached:
 *
 * ```ts
 * const worker = attach(new Worker('email', processor(catalogue, handlers), options), { catalogue })
 * ```
 *
 * Call `attach` in the same turn of the event loop as the constructor or, if the Worker has `autorun: false`, before `run()`. The
 * call does not send any commands, and a second call only replaces the catalogue. Returns its argument, which is unchanged if its
 * backend is not Redis.
 */
export function attach<T extends Attachable>(attachable: T, { catalogue }: AttachOptions = {}): T {
  const backend = attachable.getBackend()
  if (!isRedisBackend(backend)) return attachable
  // Only Workers have an id.
  if ('id' in attachable && !isComposed(backend)) Object.assign(attachable, { id: attachedWorkerId() })
  composeBackend(backend, { now: Date.now })
  const { name } = attachable
  if (catalogue !== undefined && name !== undefined) {
    prepareFetches(backend, limitsStorer(catalogue, name, backend.toKey('')))
  }
  return attachable
}

/**
 * Returns a function that stores the limits of the queue. Its promise is that of the first time, if Redis has not replied yet: no job is
 * fetched before. A Worker that has nothing to do fetches every few seconds, so no timer is needed to repeat it.
 */
function limitsStorer(catalogue: Catalogue, queue: string, base: string) {
  const limits = limitsOf(catalogue, queue)
  const keys = { base, settings: `${base}settings`, breakers: `${base}breakers` }
  let storing: Promise<void> | undefined
  let storedAt: number | undefined
  const store = (client: RedisClient, replaces: boolean): Promise<void> =>
    storeLimits(runnerOnClient(client), keys, limits, { replaces })

  return (client: RedisClient): Promise<void> | undefined => {
    const now = performance.now()
    if (storedAt === undefined) {
      storing ??= store(client, true)
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
    store(client, false).catch(() => {})
    return undefined
  }
}
