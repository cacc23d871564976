// The pools of live processes, as far as a query asks for them.
import type { Fleet, PoolStatus, ProcessStatus } from '@bullpen/engine'
import { isAlive } from '@bullpen/engine'
import { noQueue } from '../http/queue-not-found.ts'

export interface PoolQuery {
  readonly queue?: string | undefined
  readonly process?: string | undefined
}

/**
 * In the registry's order. A queue of another catalogue that a process of the fleet works is known, too.
 *
 * @throws BullpenError `queue_not_found`.
 */
export async function livePools(
  fleet: Fleet,
  { queue, process }: PoolQuery,
  queues: readonly string[],
): Promise<readonly { readonly process: ProcessStatus; readonly pool: PoolStatus }[]> {
  const { now, processes } = await fleet.processes()
  const all = processes
    .filter((each) => isAlive(each, now))
    .flatMap((each) => each.pools.map((pool) => ({ process: each, pool })))
  const known = [...new Set([...queues, ...all.map(({ pool }) => pool.queue)])]
  if (queue !== undefined && !known.includes(queue)) throw noQueue(queue, known)
  return all.filter(
    (each) =>
      (queue === undefined || each.pool.queue === queue) && (process === undefined || each.process.process === process),
  )
}
