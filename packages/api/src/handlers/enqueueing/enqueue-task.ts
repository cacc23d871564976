// POST /v1/tasks stores a task and returns its id or, with a wait, the task once it has ended.
import {
  type Accepted,
  BullpenError,
  type Dropped,
  type EnqueueRequest,
  isFinal,
  type TaskId,
  type TaskView,
} from '@bullpen/contract'
import { fieldErrorText, optionalTime, taskLinks } from '@bullpen/contract/internal'
import { stoppable } from '@bullpen/engine/internal'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { secondsToWait, type WaitQuery, waitForEnd } from '../../http/wait.ts'
import { linkedTaskView } from '../../views/linked-task-view.ts'
import { keepToRate } from './enqueue-rate.ts'
import { originOf, taskPlanner } from './planned-task.ts'
import { isExisting, isNew, reportStored, storeTask } from './store-task.ts'

export interface EnqueueQuery extends WaitQuery {
  /** What happens to the task if the caller disconnects during the wait. */
  readonly onDisconnect?: 'cancel' | 'continue' | undefined
}

type EnqueueCall = Call<unknown, EnqueueQuery>

export function enqueueTask(context: ApiContext) {
  const { catalogue, broker, emit, log } = context
  const plan = taskPlanner(context)
  const view = linkedTaskView(context)

  /** Cancels the task of a caller that has disconnected. The caller cannot receive a response, so a failure is logged. */
  async function cancelAbandoned(
    task: { readonly id: TaskId; readonly queue: string; readonly task: string },
    by: string,
  ) {
    try {
      const outcome = await broker.cancel(task.id, { stoppable: stoppable(catalogue, task.task), by })
      if (outcome === 'cancelled') emit({ event: 'task.cancelled', queue: task.queue, task: task.task, id: task.id })
    } catch (err) {
      log.warn({ err, id: task.id }, 'task of a disconnected caller could not be cancelled')
    }
  }

  return async ({ query, body, request, reply }: EnqueueCall): Promise<Accepted | Dropped | TaskView> => {
    // The body has been validated, but is still as the caller sent it.
    const wanted = body as EnqueueRequest
    const planned = plan(wanted, originOf(request))
    const { queue, task } = planned
    const seconds = secondsToWait(query, request, reply)
    if (seconds === 0 && query.wait === undefined && query.onDisconnect !== undefined) throw withoutWait()
    // An invalid task takes nothing of the API key's rate.
    const created = planned.create()
    const isRepeat = () => isExisting(context, planned)
    const stored = await keepToRate(context, request, { added: [planned], isRepeat }, async (charge) => {
      // The id is set before Redis is called, so that the problem contains the id even if Redis's reply is lost. A caller with an
      // idempotency key repeats the request instead, because an earlier request may have stored a task with another id.
      if (planned.idempotency === undefined) request.taskId = planned.id
      const enqueued = await storeTask(context, { planned, created, charge }, reply)
      if (enqueued !== undefined && isNew(enqueued)) charge.keep([planned])
      return enqueued
    })
    if (stored === undefined) {
      reply.code(200)
      return { action: 'dropped' }
    }
    const { id, action, replayed } = stored
    const isCreated = isNew(stored)
    if (isCreated) reportStored(context, planned, id)
    const links = taskLinks(id)
    reply.code(202).header('location', links.self)
    if (replayed !== undefined) reply.header('idempotency-replayed', 'true')
    const status = isCreated ? planned.status() : (replayed ?? stored).status
    const accepted = { id, action, status, ...optionalTime('expectedStartAt', stored.expectedStartAt), links } as const
    if (seconds === 0) return accepted
    const record = await waitForEnd(context, reply, id, seconds).catch((err: unknown) => {
      // The task is stored, so an error would mislead the caller.
      log.warn({ err, id }, 'end of an enqueued task could not be awaited')
    })
    if (record !== undefined && isFinal(record.status)) {
      reply.code(200)
      return view(record)
    }
    // This request must not cancel a task that another request has created.
    const isAbandoned = reply.raw.destroyed && query.onDisconnect === 'cancel' && isCreated
    if (isAbandoned) await cancelAbandoned({ id, queue, task }, requesterOf(request, 'a caller that disconnected'))
    return { ...accepted, status: record?.status ?? accepted.status }
  }
}

function withoutWait(): BullpenError {
  const error = { parameter: 'onDisconnect', message: 'requires a wait, such as wait=10s' }
  return new BullpenError('invalid_request', fieldErrorText(error), { errors: [error] })
}
