// Creates the copy of a dead task that is enqueued in another queue.
import type { QueueDefinition, TaskDefinition, TaskId, TaskRecord } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { servicesOf } from '../breaker/service-calls.ts'
import type { InputEdit } from '../ports/broker/dead-tasks.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import type { Sha256 } from '../task/digest.ts'
import { needsOf, turnOf } from '../task/needs.ts'
import { newTask } from '../task/new-task.ts'

/** Returns the copy's id. A repeated request gets the same id, so it does not enqueue a second copy. */
export function retryCopyId({ id, enqueuedAt }: TaskRecord, queue: string, request: string, sha256: Sha256): TaskId {
  return createTaskId(queue, enqueuedAt, sha256(`${id} ${request}`).subarray(0, ID_RANDOM_BYTES))
}

/**
 * Creates the copy. It has the dead task's labels, priority and attempts, and follows what the dead task followed. The timeouts are those
 * of the definition. `now` is in ms since 1970. The input, whether new or not, must have been validated.
 */
export function retryCopy(
  dead: TaskRecord,
  definition: TaskDefinition,
  {
    id,
    queue,
    edit,
    now,
  }: {
    readonly id: TaskId
    /** The settings of the copy's queue. */
    readonly queue: QueueDefinition
    readonly edit?: InputEdit | undefined
    readonly now: number
  },
): NewTask {
  const { meta, tags, concurrencyKey, correlationId, traceContext, priority, maxAttempts } = dead
  const call = {
    meta,
    priority,
    ...(tags.length > 0 && { tags: [...tags] }),
    ...(concurrencyKey !== undefined && { concurrencyKey }),
  }
  const input = edit === undefined ? dead.input : edit.input
  const version = edit === undefined ? dead.version : edit.version
  const copy = newTask(definition, input, call, {
    id,
    enqueuedAt: now,
    correlationId,
    traceContext,
    caller: { token: dead.id },
  })
  return {
    ...copy,
    queue: queue.name,
    turn: turnOf(queue, concurrencyKey),
    needs: needsOf(definition, queue),
    services: servicesOf(definition, queue),
    version,
    maxAttempts,
    followUpOf: dead.followUpOf,
    retryOf: dead.id,
  }
}
