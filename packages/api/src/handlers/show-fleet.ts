// GET /v1/fleet returns the queues, and every worker with its pools.
import type { FleetView } from '@bullpen/contract'
import { type fleetQuerySchema, timeText } from '@bullpen/contract/internal'
import { isAlive } from '@bullpen/engine/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { queueNotFound } from '../http/problems/queue-not-found.ts'
import type { Call } from '../http/routes/route.ts'
import { queueView, workerView } from '../views/fleet-view.ts'

export function showFleet({ catalogue, fleet }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof fleetQuerySchema>>): Promise<FleetView> => {
    const { queue } = query
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    const queues = queue === undefined ? catalogue.queues : [queue]
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
}
