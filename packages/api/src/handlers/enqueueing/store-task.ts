// Stores a request's task. If the queue is full, the request's policy or else the queue's policy decides what happens.
import {
  BullpenError,
  type Enqueued,
  EnqueueRateError,
  milliseconds,
  QueueFullError,
  type TaskId,
} from '@bullpen/contract'
import { isStored } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import type { FastifyReply } from 'fastify'
import { abortOnFirst } from '../../http/abort-on-first.ts'
import type { ApiContext } from '../../http/context.ts'
import { type Charge, countRefused } from './enqueue-rate.ts'
import type { PlannedTask } from './planned-task.ts'

interface TaskToStore {
  readonly planned: PlannedTask
  /** The planned task as it has been created. If the caller waits for room, each try creates the task again. */
  readonly created: NewTask
  readonly charge: Charge
}

/**
 * Returns what the broker returned, or undefined if the task was dropped.
 *
 * @throws QueueFullError if the queue is full and the policy rejects tasks, or if the queue is still full when the wait is over.
 * @throws EnqueueRateError if the request's API key has reached its enqueue rate in the queue.
 * @throws BullpenError `shutting_down` if the API closes while the caller waits for room.
 */
export async function storeTask(
  context: ApiContext,
  { planned, created, charge }: TaskToStore,
  reply: FastifyReply,
): Promise<Enqueued | undefined> {
  const { broker, blocked, closing } = context
  const { queue, whenFull, apiKeyName, mayExist } = planned
  try {
    if (typeof whenFull === 'string') return await broker.enqueue(charge.paid(created))
    const waitMs = milliseconds(whenFull.block)
    const store = (): Promise<Enqueued> => broker.enqueue(charge.paid(planned.create()))
    const findExisting = (): Promise<Enqueued> => broker.enqueue({ ...planned.create(), onlyExisting: true })
    const call = { queue, apiKeyName, store, findExisting: mayExist ? findExisting : undefined }
    const enqueue = (signal: AbortSignal) => blocked.enqueue({ ...call, signal })
    return await abortOnFirst(waitMs, closing, reply.raw, enqueue)
  } catch (error) {
    if (error instanceof EnqueueRateError) countRefused(context, [planned])
    if (!(error instanceof QueueFullError)) throw error
    if (typeof whenFull === 'object' && closing.aborted) throw shuttingDown(queue)
    refuse(context, planned, error)
    return undefined
  }
}

/**
 * Returns whether an earlier request has stored the task, or another task has its unique key. Takes a round trip if either is possible.
 *
 * @throws BullpenError like {@link storeTask}.
 */
export async function isExisting({ broker }: ApiContext, planned: PlannedTask): Promise<boolean> {
  if (!planned.mayExist) return false
  try {
    await broker.enqueue({ ...planned.create(), onlyExisting: true })
    return true
  } catch (error) {
    if (error instanceof QueueFullError || error instanceof EnqueueRateError) return false
    throw error
  }
}

/** Returns whether this call has stored a task. */
export function isNew({ action, replayed }: Enqueued): boolean {
  return isStored(action) && replayed === undefined
}

/** Counts a new task that has been stored, and how long that took. `id` differs from the planned one for members of groups. */
export function reportStored({ emit, enqueueTimed }: ApiContext, planned: PlannedTask, id: TaskId): void {
  const { queue, task, plannedAt } = planned
  emit({ event: 'task.enqueued', queue, task, id })
  enqueueTimed(queue, (performance.now() - plannedAt) / 1_000)
}

/** Counts a task for which there is no room. Returns if the task is dropped, and throws the error if it is rejected. */
export function refuse({ emit }: ApiContext, { queue, task, whenFull }: PlannedTask, error: QueueFullError): void {
  const action = whenFull === 'drop' ? 'dropped' : 'rejected'
  emit({ event: 'task.refused', queue, task, limit: error.reached.limit, action })
  if (action === 'rejected') throw error
}

function shuttingDown(queue: string): BullpenError {
  return new BullpenError(
    'shutting_down',
    `the API is shutting down, and queue '${queue}' is full; the task was not stored, so send the request again`,
  )
}
