// GET /v1/workers: the slots of live workers, and what each of them runs.
import type { SlotPage } from '@bullpen/contract'
import type { slotQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/route.ts'
import { workerView } from '../views/fleet-view.ts'
import { livePools } from '../views/pool-list.ts'

export function listWorkers({ catalogue, fleet }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof slotQuerySchema>>): Promise<SlotPage> => {
    const { state, ...which } = query
    const pools = await livePools(fleet, which, catalogue.queues)
    return {
      slots: pools.flatMap(({ worker, pool }) =>
        pool.slots
          .filter((slot) => state === undefined || slot.state === state)
          .map((slot) => workerView(worker, pool, slot, catalogue)),
      ),
    }
  }
}
