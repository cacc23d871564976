// Stores the task of a request. If the queue is full, the request's policy or the queue's decides what happens.
import { BullpenError, type Enqueued, milliseconds, QueueFullError, type WhenFull } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import type { FastifyReply } from 'fastify'
import { abortOnFirst } from '../http/abort-on-first.ts'
import type { ApiContext } from '../http/context.ts'

export interface StoreCall {
  readonly queue: string
  readonly task: string
  readonly whenFull: WhenFull
  /** Creates the task for a try. While a caller waits for room, every try stores the task as of its own time. */
  readonly create: () => NewTask
  readonly reply: FastifyReply
}

/**
 * Returns what the broker returned, or undefined if the task was dropped.
 *
 * @throws QueueFullError if the queue is full and its tasks are rejected, or if it is still full when the wait is over.
 * @throws BullpenError `shutting_down` if the API closes while the caller waits for room.
 */
export async function storeTask(context: ApiContext, call: StoreCall): Promise<Enqueued | undefined> {
  const { broker, blocked, closing, emit } = context
  const { queue, task, whenFull, create, reply } = call
  const store = (): Promise<Enqueued> => broker.enqueue(create())
  try {
    if (typeof whenFull === 'string') return await store()
    const waitMs = milliseconds(whenFull.block)
    return await abortOnFirst(waitMs, closing, reply.raw, (signal) => blocked.enqueue({ queue, store, signal }))
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error
    if (typeof whenFull === 'object' && closing.aborted) throw shuttingDown(queue)
    const action = whenFull === 'drop' ? 'dropped' : 'rejected'
    emit({ event: 'task.refused', queue, task, limit: error.reached.limit, action })
    if (action === 'rejected') throw error
    return undefined
  }
}

function shuttingDown(queue: string): BullpenError {
  return new BullpenError(
    'shutting_down',
    `the API is shutting down, and queue '${queue}' is full; the task was not stored, so send the request again`,
  )
}
