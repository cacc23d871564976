// Checks the limits of a queue, for the memory broker.
import { QueueFullError, type QueueLimits } from '@bullpen/contract'
import type { MemoryStore } from './memory-store.ts'

/** `replaced` is how many tasks the new one replaces. @throws QueueFullError if the queue has reached a limit. */
export function assertRoom(queue: string, { maxTasks }: QueueLimits, store: MemoryStore, replaced: number): void {
  const tasks = store.in('waiting').length + store.in('delayed').length - replaced
  if (maxTasks !== undefined && tasks >= maxTasks) {
    throw new QueueFullError({ queue, limit: 'maxTasks', max: maxTasks, found: tasks })
  }
}
