// Checks the limits of a queue, for the memory broker.
import { QueueFullError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { tooLargeForQueue } from '@bullpen/engine/internal'
import type { MemoryStore } from '../store/memory-store.ts'
import type { StoredTask } from '../store/stored-task.ts'
import { bytesOf } from '../store/task-places.ts'

/** What one call stores before a task. */
export interface Pending {
  readonly tasks: number
  readonly bytes: number
}

export interface Room {
  readonly store: MemoryStore
  /** How many bytes the task takes until it ends. */
  readonly taskBytes: number
  /** In ms since 1970. */
  readonly now: number
  /** The task that the new one replaces. */
  readonly replaced: StoredTask | undefined
  readonly pending: Pending
}

/**
 * Checks whether the queue has room for a task.
 *
 * @throws QueueFullError if one of the task's limits is reached.
 * @throws BullpenError `payload_too_large` if the task alone exceeds the limit of bytes.
 */
export function assertRoom({ queue, limits = {}, onlyExisting = false }: NewTask, room: Room): void {
  const { store, taskBytes, now, replaced, pending } = room
  const { maxBytes, maxAgeMs } = limits
  const maxTasks = onlyExisting ? 0 : limits.maxTasks
  const waiting = store.places.in('waiting')
  const tasks = waiting.length + store.places.in('delayed').length - (replaced === undefined ? 0 : 1)
  if (maxTasks !== undefined && tasks + pending.tasks >= maxTasks) {
    throw new QueueFullError({ queue, limit: 'maxTasks', max: maxTasks, found: tasks })
  }
  const bytes = store.places.bytes - (replaced === undefined ? 0 : bytesOf(replaced))
  const needed = pending.bytes + taskBytes
  if (maxBytes !== undefined && bytes + needed > maxBytes) {
    if (needed > maxBytes) throw tooLargeForQueue(queue, needed, maxBytes)
    throw new QueueFullError({ queue, limit: 'maxBytes', max: maxBytes, found: bytes })
  }
  const [next] = waiting
  if (maxAgeMs === undefined || next === undefined || next === replaced || next.fencingToken > 0) return
  const age = now - next.enqueuedAt - next.delayMs
  if (age >= maxAgeMs) throw new QueueFullError({ queue, limit: 'maxAge', max: maxAgeMs, found: age })
}

/**
 * Checks whether the task's API key may have one more task in the queue.
 *
 * @throws QueueFullError if it may not.
 */
export function assertRoomForApiKey({ queue, limits, apiKeyName }: NewTask, { store, replaced, pending }: Room): void {
  const max = limits?.perApiKey?.maxUnfinishedTasks
  if (max === undefined || apiKeyName === undefined) return
  const found = store.places.unfinished.filter((task) => task.countedFor === apiKeyName && task !== replaced).length
  if (found + pending.tasks < max) return
  throw new QueueFullError({ queue, limit: 'maxUnfinishedTasks', apiKeyName, max, found })
}
