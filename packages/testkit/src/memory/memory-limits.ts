// Checks the limits of a queue, for the memory broker.
import { QueueFullError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import type { MemoryStore } from './memory-store.ts'
import type { StoredTask } from './stored-task.ts'

/**
 * Checks whether the queue has room for a task. `now` is in ms since 1970, and `replaced` is the task that the new one replaces.
 * `pending` is how many tasks the same call stores before it.
 *
 * @throws QueueFullError if one of the task's limits is reached.
 */
export function assertRoom(
  { queue, limits = {} }: NewTask,
  store: MemoryStore,
  now: number,
  replaced: StoredTask | undefined,
  pending: number,
): void {
  const { maxTasks, maxAgeMs } = limits
  const waiting = store.in('waiting')
  const tasks = waiting.length + store.in('delayed').length - (replaced === undefined ? 0 : 1)
  if (maxTasks !== undefined && tasks + pending >= maxTasks) {
    throw new QueueFullError({ queue, limit: 'maxTasks', max: maxTasks, found: tasks })
  }
  const [next] = waiting
  if (maxAgeMs === undefined || next === undefined || next === replaced || next.fencingToken > 0) return
  const age = now - next.enqueuedAt - next.delayMs
  if (age >= maxAgeMs) throw new QueueFullError({ queue, limit: 'maxAge', max: maxAgeMs, found: age })
}
