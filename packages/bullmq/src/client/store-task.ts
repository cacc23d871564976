// Stores the task of a client over Redis. If the queue is full, the policy of the request or of the queue decides, as it does in
// the API.
import { type Enqueued, milliseconds, QueueFullError } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import type { BlockedCallers } from '@bullpen/engine/internal'
import { afterTime } from './aborts.ts'
import type { PlannedTask } from './planned-task.ts'

/**
 * Returns what the broker returned, or undefined if the task was dropped. Stops waiting for room when the signal aborts.
 *
 * @throws BullpenError like the broker, and `queue_full` if the task is rejected or there is still no room when its wait is over.
 */
export type StoreTask = (planned: PlannedTask, signal: AbortSignal | undefined) => Promise<Enqueued | undefined>

export function taskStorer(broker: Pick<Broker, 'enqueue'>, blocked: BlockedCallers): StoreTask {
  return async ({ create, queue, whenFull }, signal) => {
    const store = () => broker.enqueue(create())
    // An earlier try may have stored the task.
    const findExisting = () => broker.enqueue({ ...create(), onlyExisting: true })
    try {
      if (typeof whenFull === 'string') return await store()
      return await afterTime(milliseconds(whenFull.block), signal, (end) =>
        blocked.enqueue({ queue, store, findExisting, signal: end }),
      )
    } catch (error) {
      if (error instanceof QueueFullError && whenFull === 'drop') return undefined
      throw error
    }
  }
}
