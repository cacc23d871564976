// The pools of live workers, as far as a query asks for them.
import type { PoolStatus } from '@bullpen/engine'
import type { Fleet, WorkerStatus } from '@bullpen/engine/internal'
import { isAlive } from '@bullpen/engine/internal'
import { noQueue } from '../http/queue-not-found.ts'

export interface PoolQuery {
  readonly queue?: string | undefined
  readonly worker?: string | undefined
}

/**
 * In the registry's order. A queue of another catalogue that a worker of the fleet works is known, too.
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
  if (queue !== undefined && !known.includes(queue)) throw noQueue(queue, known)
  return all.filter(
    (each) =>
      (queue === undefined || each.pool.queue === queue) && (worker === undefined || each.worker.worker === worker),
  )
}
