// POST /v1/tasks/cancel: ends all tasks of a queue that a filter fits; and GET /v1/cancels/{id}: how far that is.
import { BullpenError, type Cancellation, type CancelRequest, milliseconds } from '@bullpen/contract'
import type { CancelProgress } from '@bullpen/engine/internal'
import type { ApiContext } from '../http/context.ts'
import { noQueue } from '../http/queue-not-found.ts'
import type { Call } from '../http/route.ts'

export function cancelTasks({ catalogue, broker, now }: ApiContext) {
  return async ({ body, reply }: Call): Promise<Cancellation> => {
    // The validator has let it through, and left it as it was sent.
    const { queue, task, tag, olderThan } = body as CancelRequest
    if (!catalogue.queues.includes(queue)) throw noQueue(queue, catalogue.queues)
    if (task !== undefined) checkTask(task, catalogue.get(task).queue, queue)
    const before = now() - (olderThan === undefined ? 0 : milliseconds(olderThan, 'olderThan'))
    const rule = await broker.cancelMany({ queue, task, tag, before, reason: 'cancelled' })
    const view = viewOf({ rule, ended: 0, doneAt: undefined })
    reply.code(202).header('location', view.links.self)
    return view
  }
}

export function showCancel({ broker }: ApiContext) {
  return async ({ params: { id } }: Call<{ readonly id: string }>): Promise<Cancellation> => {
    const progress = await broker.cancelProgress(id)
    if (progress !== undefined) return viewOf(progress)
    throw new BullpenError(
      'cancel_not_found',
      `there is no cancel ${JSON.stringify(id.slice(0, 100))}; it is told of for a day after it was done`,
    )
  }
}

/** One that could cover nothing is a mistake. */
function checkTask(task: string, itsQueue: string, queue: string): void {
  if (itsQueue === queue) return
  const message = `${task} runs in the queue '${itsQueue}', not in '${queue}'`
  throw new BullpenError('invalid_request', `task: ${message}`, { errors: [{ path: 'task', message }] })
}

function viewOf({ rule, ended, doneAt }: CancelProgress): Cancellation {
  const { id, queue, task, tag, before, at } = rule
  return {
    id,
    queue,
    ...(task === undefined ? {} : { task }),
    ...(tag === undefined ? {} : { tag }),
    enqueuedUntil: new Date(before).toISOString(),
    status: doneAt === undefined ? 'pending' : 'done',
    ended,
    requestedAt: new Date(at).toISOString(),
    ...(doneAt === undefined ? {} : { doneAt: new Date(doneAt).toISOString() }),
    links: { self: `/v1/cancels/${id}` },
  }
}
