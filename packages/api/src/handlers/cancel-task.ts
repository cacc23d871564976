// POST /v1/tasks/{id}/cancel: ends a task that waits, and asks one that runs to stop.
import { type Cancelled, type CancelOutcome, isFinal, type TaskRecord } from '@bullpen/contract'
import { readTaskId, taskId } from '@bullpen/contract/internal'
import type { ApiContext } from '../http/context.ts'
import type { Call } from '../http/route.ts'
import { untilEither } from '../http/wait.ts'
import { linksOf } from '../views/links.ts'
import { notFound, type ShowParams, type ShowQuery } from './show-task.ts'

export function cancelTask(context: ApiContext) {
  const { catalogue, broker, closing, emit } = context
  return async ({ params, query, reply }: Call<ShowParams, ShowQuery>): Promise<Cancelled> => {
    const id = taskId(params.id)
    if (!catalogue.queues.includes(readTaskId(id)?.queue ?? '')) throw notFound(id)
    const found = await broker.find(id)
    if (found === undefined) throw notFound(id)
    // One of another catalogue's is asked to stop: whoever runs it knows whether it can.
    const stoppable = !catalogue.has(found.task) || catalogue.get(found.task).kind === 'long'
    const answer = await broker.cancel(id, { stoppable })
    if (answer === 'not_found') throw notFound(id)
    if (answer === 'cancelled') emit({ event: 'task.cancelled', queue: found.queue, task: found.task, id })
    const seconds = query.wait ?? 0
    const record =
      answer === 'cancelling' && seconds > 0
        ? await untilEither(seconds * 1_000, closing, reply.raw, (signal) => broker.waitUntilFinished(id, signal))
        : await broker.find(id)
    const { status } = record ?? found
    return { id, outcome: outcomeOf(answer, record), status, links: linksOf(id, found.queue, status) }
  }
}

/** What it has come to by now: a task that is told to stop may have ended in another way before it heard of it. */
function outcomeOf(answer: CancelOutcome, record: TaskRecord | undefined): CancelOutcome {
  if (answer !== 'cancelling' || record === undefined || !isFinal(record.status)) return answer
  return record.status === 'cancelled' ? 'cancelled' : 'already_ended'
}
