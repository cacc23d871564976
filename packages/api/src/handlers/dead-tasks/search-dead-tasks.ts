// GET /v1/dead-tasks returns the dead tasks of a queue that match a filter, newest first, page by page. GET /v1/dead-tasks/fingerprints
// counts dead tasks by kind of error, in one queue or in all of them.
import type { FingerprintCounts, TaskPage } from '@bullpen/contract'
import type { deadQuerySchema, fingerprintsQuerySchema } from '@bullpen/contract/internal'
import type { ApiContext } from '../../http/context.ts'
import { knownQueues } from '../../http/known-names.ts'
import type { QueryCall } from '../../http/routes/route.ts'
import { deadFilter, fingerprintView } from '../../views/dead-task-view.ts'
import { linkedTaskView } from '../../views/linked-task-view.ts'

export async function searchDeadTasks(
  context: ApiContext,
  { query: { limit, cursor, ...filter } }: QueryCall<typeof deadQuerySchema>,
): Promise<TaskPage> {
  knownQueues(context.catalogue, filter.queue)
  const { tasks, next } = await context.broker.searchDead({ ...deadFilter(filter), limit, cursor })
  return { tasks: tasks.map(linkedTaskView(context)), ...(next !== undefined && { next }) }
}

export async function countFingerprints(
  { catalogue, broker }: ApiContext,
  { query }: QueryCall<typeof fingerprintsQuerySchema>,
): Promise<FingerprintCounts> {
  const counts = await Promise.all(
    knownQueues(catalogue, query.queue).map(async (queue) =>
      (await broker.countDead(queue)).map((count) => ({ queue, ...fingerprintView(count) })),
    ),
  )
  return { fingerprints: counts.flat().toSorted((a, b) => b.count - a.count) }
}
