// GET /v1/fleet: the queues, and every process with its pools.
import type { FleetView, fleetQuerySchema } from '@bullpen/contract'
import { isAlive } from '@bullpen/engine'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { noQueue } from '../http/queue-not-found.ts'
import type { Call } from '../http/route.ts'
import { processView, queueView } from '../views/fleet-view.ts'
import { timeText } from '../views/times.ts'

export function showFleet({ catalogue, fleet }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof fleetQuerySchema>>): Promise<FleetView> => {
    const { queue } = query
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw noQueue(queue, catalogue.queues)
    const queues = queue === undefined ? catalogue.queues : [queue]
    const [{ now, processes }, ...switches] = await Promise.all([
      fleet.processes(),
      ...queues.map(async (name) => ({ name, switches: await fleet.switches(name) })),
    ])
    const live = processes.filter((process) => isAlive(process, now))
    return {
      now: timeText(now),
      queues: switches.map((each) => queueView(each.name, each.switches, live)),
      processes: processes
        .filter(({ pools }) => queue === undefined || pools.some((pool) => pool.queue === queue))
        .map((process) => processView(process, now, queue)),
    }
  }
}
