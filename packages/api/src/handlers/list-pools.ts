// GET /v1/pools returns the pools of live workers.
import type { PoolPage } from '@bullpen/contract'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { poolView } from '../views/fleet-view.ts'
import { livePools, type PoolQuery } from '../views/pool-list.ts'

export function listPools({ catalogue, fleet }: ApiContext) {
  return async ({ query }: Call<unknown, PoolQuery>): Promise<PoolPage> => {
    const pools = await livePools(fleet, query, catalogue.queues)
    return { pools: pools.map(({ worker, pool }) => ({ worker: worker.worker, ...poolView(pool) })) }
  }
}
