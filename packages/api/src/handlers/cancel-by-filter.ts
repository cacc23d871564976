// POST /v1/tasks/cancel cancels a queue's tasks that match a filter, or counts them. GET /v1/cancels/{id} shows the progress.
import {
  BullpenError,
  type Cancellation,
  type CancelPreview,
  type CancelRequest,
  milliseconds,
} from '@bullpen/contract'
import { type cancelManyQuerySchema, optionalTime, timeText } from '@bullpen/contract/internal'
import { type CancelFilter, type CancelProgress, invalidRequest } from '@bullpen/engine/internal'
import { requesterOf } from '../auth/requester.ts'
import type { ApiContext } from '../http/context.ts'
import { knownQueues } from '../http/known-names.ts'
import type { IdCall, QueryCall } from '../http/routes/route.ts'
import { countMatching } from './count-matching.ts'

export async function cancelByFilter(
  { catalogue, broker, now }: ApiContext,
  { query, body, request, reply }: QueryCall<typeof cancelManyQuerySchema>,
): Promise<Cancellation | CancelPreview> {
  // The body has been validated, but is still as the caller sent it.
  const { queue, task, tag, olderThan, by } = body as CancelRequest
  knownQueues(catalogue, queue)
  if (task !== undefined) checkQueueOf(task, catalogue.get(task).queue, queue)
  const before = now() - (olderThan === undefined ? 0 : milliseconds(olderThan, 'olderThan'))
  const filter: CancelFilter = { queue, task, tag, before, reason: 'cancelled', by: requesterOf(request, by) }
  if (query.dryRun) {
    reply.code(200)
    return { ...filterView(filter), ...(await countMatching(broker, filter)) }
  }
  const rule = await broker.cancelMany(filter)
  const view = cancellationView({ rule, ended: 0, doneAt: undefined })
  reply.code(202).header('location', view.links.self)
  return view
}

export async function showCancel({ broker }: ApiContext, { params: { id } }: IdCall): Promise<Cancellation> {
  const progress = await broker.cancelProgress(id)
  if (progress !== undefined) return cancellationView(progress)
  throw new BullpenError(
    'cancel_not_found',
    `cancellation ${JSON.stringify(id.slice(0, 100))} not found; cancellations are kept for 24 hours after they complete`,
  )
}

function cancellationView({ rule, ended, doneAt }: CancelProgress): Cancellation {
  return {
    id: rule.id,
    ...filterView(rule),
    by: rule.by,
    status: doneAt === undefined ? 'pending' : 'done',
    ended,
    requestedAt: timeText(rule.at),
    ...optionalTime('doneAt', doneAt),
    links: { self: `/v1/cancels/${rule.id}` },
  }
}

function filterView({ queue, task, tag, before }: CancelFilter): Omit<CancelPreview, 'matching' | 'exact'> {
  return {
    queue,
    ...(task !== undefined && { task }),
    ...(tag !== undefined && { tag }),
    enqueuedUntil: timeText(before),
  }
}

/** Rejects a filter that cannot match any task, because the caller must have made a mistake. */
function checkQueueOf(task: string, itsQueue: string, queue: string): void {
  if (itsQueue === queue) return
  throw invalidRequest('/task', `${task} runs in queue '${itsQueue}', not in '${queue}'`)
}
