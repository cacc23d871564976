// GET /v1/workers: the workers of live processes, and what each of them runs.
import type { WorkerPage, workerQuerySchema } from '@bullpen/contract'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/route.ts'
import { workerView } from '../views/fleet-view.ts'
import { livePools } from '../views/pool-list.ts'

export function listWorkers({ catalogue, fleet }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof workerQuerySchema>>): Promise<WorkerPage> => {
    const { state, ...which } = query
    const pools = await livePools(fleet, which, catalogue.queues)
    return {
      workers: pools.flatMap(({ process, pool }) =>
        pool.workers
          .filter((worker) => state === undefined || worker.state === state)
          .map((worker) => workerView(process, pool, worker, catalogue)),
      ),
    }
  }
}
