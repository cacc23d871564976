// GET /v1/dead-tasks/fingerprints counts dead tasks by kind of error, in one queue or in all of them.
import type { FingerprintCounts } from '@bullpen/contract'
import type { ApiContext } from '../../http/context.ts'
import { queueNotFound } from '../../http/problems/queue-not-found.ts'
import type { Call } from '../../http/routes/route.ts'
import { fingerprintView } from '../../views/dead-task-view.ts'

export function countFingerprints({ catalogue, broker }: ApiContext) {
  return async ({
    query: { queue },
  }: Call<unknown, { readonly queue?: string | undefined }>): Promise<FingerprintCounts> => {
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    const queues = queue === undefined ? catalogue.queues : [queue]
    const counts = await Promise.all(
      queues.map(async (name) =>
        (await broker.countDead(name)).map((count) => ({ queue: name, ...fingerprintView(count) })),
      ),
    )
    return { fingerprints: counts.flat().toSorted((a, b) => b.count - a.count) }
  }
}
