// Lists the pools of live workers that match a query.
import type { PoolStatus } from '@bullpen/engine'
import { type Fleet, isAlive, type WorkerStatus } from '@bullpen/engine/internal'
import { queueNotFound } from '../http/problems/queue-not-found.ts'

export interface PoolQuery {
  readonly queue?: string | undefined
  readonly worker?: string | undefined
}

/**
 * Returns the pools in the order of the registry. A queue that is missing from this catalogue is also accepted if a live worker has
 * a pool on it.
 *
 * @throws BullpenError `queue_not_found`.
 */
export async function livePools(
  fleet: Fleet,
  { queue, worker }: PoolQuery,
  queues: readonly string[],
): Promise<readonly { readonly worker: WorkerStatus; readonly pool: PoolStatus }[]> {
  const { now, workers } = await fleet.workers()
  const all = workers
    .filter((each) => isAlive(each, now))
    .flatMap((each) => each.pools.map((pool) => ({ worker: each, pool })))
  const known = [...new Set([...queues, ...all.map(({ pool }) => pool.queue)])]
  if (queue !== undefined && !known.includes(queue)) throw queueNotFound(queue, known)
  return all.filter(
    (each) =>
      (queue === undefined || each.pool.queue === queue) && (worker === undefined || each.worker.worker === worker),
  )
}
