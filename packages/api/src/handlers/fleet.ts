// GET /v1/fleet returns the queues, and every worker with its pools. GET /v1/pools and GET /v1/slots return the pools and the slots of
// live workers.
import type { FleetView, PoolPage, SlotPage } from '@bullpen/contract'
import { type fleetQuerySchema, type poolQuerySchema, type slotQuerySchema, timeText } from '@bullpen/contract/internal'
import type { PoolStatus } from '@bullpen/engine'
import { isAlive, type WorkerStatus } from '@bullpen/engine/internal'
import type { ApiContext } from '../http/context.ts'
import { knownQueues, queueNotFound } from '../http/known-names.ts'
import type { QueryCall } from '../http/routes/route.ts'
import { poolView, queueView, slotView, workerView } from '../views/fleet-view.ts'

export async function showFleet(
  { catalogue, fleet }: ApiContext,
  { query: { queue } }: QueryCall<typeof fleetQuerySchema>,
): Promise<FleetView> {
  const queues = knownQueues(catalogue, queue)
  const [{ now, workers }, logLevel, ...settingsByQueue] = await Promise.all([
    fleet.workers(),
    fleet.logLevel(),
    ...queues.map(async (name) => ({ name, settings: await fleet.queueSettings(name) })),
  ])
  const live = workers.filter((worker) => isAlive(worker, now))
  return {
    now: timeText(now),
    ...(logLevel !== undefined && { logLevel: { ...logLevel, until: timeText(logLevel.until) } }),
    queues: settingsByQueue.map((each) => queueView(each.name, each.settings, live)),
    workers: workers
      .filter(({ pools }) => queue === undefined || pools.some((pool) => pool.queue === queue))
      .map((worker) => workerView(worker, now, queue)),
  }
}

export async function listPools(context: ApiContext, { query }: QueryCall<typeof poolQuerySchema>): Promise<PoolPage> {
  const pools = await livePools(context, query)
  return { pools: pools.map(({ worker, pool }) => ({ worker: worker.worker, ...poolView(pool) })) }
}

export async function listSlots(context: ApiContext, { query }: QueryCall<typeof slotQuerySchema>): Promise<SlotPage> {
  const pools = await livePools(context, query)
  return {
    slots: pools.flatMap(({ worker, pool }) =>
      pool.slots
        .filter((slot) => query.state === undefined || slot.state === query.state)
        .map((slot) => slotView(worker, pool, slot, context.catalogue)),
    ),
  }
}

/**
 * Returns the matching pools of live workers in the order of the registry. A queue that is missing from this catalogue is also accepted if
 * a live worker has a pool on it.
 *
 * @throws BullpenError `queue_not_found`.
 */
async function livePools(
  { catalogue, fleet }: ApiContext,
  { queue, worker }: { readonly queue?: string | undefined; readonly worker?: string | undefined },
): Promise<readonly { readonly worker: WorkerStatus; readonly pool: PoolStatus }[]> {
  const { now, workers } = await fleet.workers()
  const all = workers
    .filter((each) => isAlive(each, now))
    .flatMap((each) => each.pools.map((pool) => ({ worker: each, pool })))
  const known = [...new Set([...catalogue.queues, ...all.map(({ pool }) => pool.queue)])]
  if (queue !== undefined && !known.includes(queue)) throw queueNotFound(queue, known)
  return all.filter(
    (each) =>
      (queue === undefined || each.pool.queue === queue) && (worker === undefined || each.worker.worker === worker),
  )
}
