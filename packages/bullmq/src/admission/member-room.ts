// Checks whether a queue has room for members of a group, which are enqueued a little later.
import { QueueFullError, type QueueLimits, type ReachedLimit } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { refusedTogether } from '@bullpen/engine/internal'
import type { QueueKeys } from '../keys.ts'
import { countTasks } from '../queries/counts.ts'
import type { Commander } from '../scripts/script.ts'

export interface WantedRoom {
  readonly queue: string
  readonly limits: QueueLimits
  /** How many bytes the tasks together take. */
  readonly bytes: number
  /** Tasks of one API key. */
  readonly tasks: readonly NewTask[]
}

/**
 * Checks the limits of a queue that concern the number of tasks and their size. The check and a later add are not atomic. Takes one
 * round trip, and two if a limit concerns the number of tasks or of an API key's tasks.
 *
 * @throws QueueFullError, or BullpenError `payload_too_large` if the tasks would not even fit into an empty queue.
 */
export async function assertRoom(
  redis: Commander,
  keys: QueueKeys,
  { queue, limits, bytes, tasks }: WantedRoom,
): Promise<void> {
  const { maxTasks, maxBytes, perApiKey } = limits
  const added = tasks.length
  const refused = (reached: ReachedLimit) => refusedTogether(new QueueFullError(reached), { tasks: added, bytes })
  if (maxBytes !== undefined) {
    const found = Number((await redis.hget(keys.totals, 'bytes')) ?? 0)
    if (found + bytes > maxBytes) throw refused({ queue, limit: 'maxBytes', max: maxBytes, found })
  }
  if (maxTasks !== undefined) {
    const { waiting, scheduled, retrying } = await countTasks(redis, keys)
    const found = waiting + scheduled + retrying
    if (found + added > maxTasks) throw refused({ queue, limit: 'maxTasks', max: maxTasks, found })
  }
  const max = perApiKey?.maxUnfinishedTasks
  const apiKeyName = tasks[0]?.apiKeyName
  if (max === undefined || apiKeyName === undefined) return
  const found = Number((await redis.hget(keys.apiKeyTasks, apiKeyName)) ?? 0)
  if (found + added > max) throw refused({ queue, limit: 'maxUnfinishedTasks', apiKeyName, max, found })
}
