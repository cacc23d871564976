// GET /v1/queues/{queue}/limits returns the limits of a queue that are in force, its circuit breakers, and its concurrency keys
// with what keeps each from starting tasks.
import type { LimitsView } from '@bullpen/contract'
import { type limitsQuerySchema, timeText } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../http/context.ts'
import { knownQueues } from '../http/known-names.ts'
import type { Call } from '../http/routes/route.ts'
import { breakerView } from '../views/fleet-view.ts'
import { keyView, limitsInForce } from '../views/limits-view.ts'

export function showLimits({ catalogue, broker, fleet, apiKeyNames }: ApiContext) {
  return async ({
    params: { queue },
    query,
  }: Call<{ queue: string }, z.output<typeof limitsQuerySchema>>): Promise<LimitsView> => {
    knownQueues(catalogue, queue)
    const { concurrencyKey, sort: order = 'backlog', limit, cursor } = query
    const definition = catalogue.queue(queue)
    const [stored, page] = await Promise.all([
      fleet.limitSettings(queue, apiKeyNames),
      broker.concurrencyKeys(
        concurrencyKey === undefined ? { queue, order, limit, cursor } : { queue, concurrencyKey },
      ),
    ])
    const { now, keys, ...counts } = page
    return {
      queue,
      now: timeText(now),
      paused: stored.settings.paused,
      takesTurns: definition.fairness !== undefined,
      limits: limitsInForce(stored, definition),
      breakers: stored.settings.breakers?.map(breakerView),
      keys: { ...counts, items: keys.map((key) => keyView(key, definition.fairness)) },
    }
  }
}
