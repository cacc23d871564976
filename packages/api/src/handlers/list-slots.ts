// GET /v1/slots returns the slots of live workers, each with the task that it is running.
import type { SlotPage } from '@bullpen/contract'
import type { slotQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/routes/route.ts'
import { slotView } from '../views/fleet-view.ts'
import { livePools } from '../views/pool-list.ts'

export function listSlots({ catalogue, fleet }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof slotQuerySchema>>): Promise<SlotPage> => {
    const { state, ...which } = query
    const pools = await livePools(fleet, which, catalogue.queues)
    return {
      slots: pools.flatMap(({ worker, pool }) =>
        pool.slots
          .filter((slot) => state === undefined || slot.state === state)
          .map((slot) => slotView(worker, pool, slot, catalogue)),
      ),
    }
  }
}
