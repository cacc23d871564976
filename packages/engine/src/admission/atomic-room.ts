// Decides what happens to an atomic request for whose tasks a queue has no room.
import { BullpenError, QueueFullError, type ReachedLimit } from '@bullpen/contract'
import { tooLargeForQueue } from './task-bytes.ts'

/** The room that the new tasks of an atomic request need together. A task that an earlier request has stored needs none. */
export interface NeededRoom {
  readonly tasks: number
  readonly bytes: number
}

/**
 * Returns the error for an atomic request if the queue is too full for one of its tasks. The code is `payload_too_large` if the
 * tasks would not even fit into an empty queue, so that the caller does not repeat the request. Otherwise, the code is
 * `queue_full`, and the message says how many tasks the request has.
 */
export function refusedTogether({ reached }: QueueFullError, needed: NeededRoom): BullpenError {
  return neverFits(reached, needed) ?? new QueueFullError({ ...reached, wanted: needed.tasks })
}

function neverFits({ queue, limit, apiKeyName, max }: ReachedLimit, needed: NeededRoom): BullpenError | undefined {
  switch (limit) {
    case 'maxAge':
      return undefined
    case 'maxBytes':
      return needed.bytes > max ? tooLargeForQueue(queue, needed.bytes, max) : undefined
    case 'maxTasks':
    case 'maxUnfinishedTasks': {
      if (needed.tasks <= max) return undefined
      const caller = apiKeyName === undefined ? '' : ` of API key '${apiKeyName}'`
      return new BullpenError(
        'payload_too_large',
        `the request has ${needed.tasks} tasks, but queue '${queue}' holds at most ${max} tasks${caller} (${limit}); send fewer tasks in each request, or raise the limit`,
      )
    }
  }
}
