// Decides whether a task still has its unique key, and what happens to a new task if another task has its key.
//
// The store records only which task last received a key, and examines that task when another task wants the key. A task that
// starts or ends therefore does not have to release its key. The scripts in packages/bullmq make the same decisions in Lua
// (store/lua/includes/add/unique-keys.lua and key-owner.lua).
import { BullpenError, type TaskId, type TaskStatus } from '@bullpen/contract'
import type { NewTask, UniqueKey } from '../ports/broker/new-task.ts'

/** Until when a task has its key: until it has started, until it has ended, or until a time in ms since 1970. */
export type KeySpan = 'started' | 'finished' | number

/** The facts about a stored task on which the decisions depend. */
export interface KeyOwner {
  readonly status: TaskStatus
  /** Whether a worker has started the task. */
  readonly hasStarted: boolean
  /** Whether it is certain that the task will not start, because its queue timeout has passed or a cancel by filter covers it. */
  readonly willNotStart: boolean
  readonly isEnded: boolean
  /** In ms since 1970. */
  readonly enqueuedAt: number
  /** When a scheduled task is due, in ms since 1970. */
  readonly dueAt: number | undefined
}

/** Returns when a task that is enqueued now releases its key. */
export function keySpan({ until }: UniqueKey, now: number): KeySpan {
  return typeof until === 'number' ? now + until : until
}

/**
 * Returns a key's new span when its owner's start is postponed. If both the old and the new span are a time, the new task's time
 * starts now.
 */
export function extendedSpan(span: KeySpan, { until }: UniqueKey, now: number): KeySpan {
  return typeof span === 'number' && typeof until === 'number' ? now + until : span
}

/** Returns whether a task still has the key that it received with this span. `task` is undefined if the task has been deleted. */
export function hasKey(span: KeySpan, task: KeyOwner | undefined, now: number): boolean {
  if (typeof span === 'number') return now < span
  if (task === undefined || task.isEnded || task.willNotStart) return false
  return span === 'finished' || !task.hasStarted
}

/** What happens to a new task if another task has its key. `dueAt` is the other task's new start, in ms since 1970. */
export type KeyConflict =
  | { readonly action: 'existing' | 'replaced' | 'refused' }
  | { readonly action: 'extended'; readonly dueAt: number }

/** Decides what happens to a new task if the task `other` has its key. `other` is undefined if that task has been deleted. */
export function resolveConflict(unique: UniqueKey, startsAt: number, other: KeyOwner | undefined): KeyConflict {
  const { onConflict, maxDelayMs } = unique
  if (onConflict === 'error') return { action: 'refused' }
  if (onConflict === 'keep' || other === undefined || other.hasStarted || other.willNotStart) return KEPT
  const { status, dueAt, enqueuedAt } = other
  if (onConflict === 'replace') return status === 'waiting' || status === 'scheduled' ? { action: 'replaced' } : KEPT
  const isLater = status === 'scheduled' && dueAt !== undefined && startsAt > dueAt
  // A task never starts after its total timeout.
  const mayStart = maxDelayMs === undefined || startsAt - enqueuedAt < maxDelayMs
  return isLater && mayStart ? { action: 'extended', dueAt: startsAt } : KEPT
}

const KEPT: KeyConflict = { action: 'existing' }

/** Returns the name under which a queue stores a key. */
export function nameOfKey(task: string, { key }: UniqueKey): string {
  return `${task}:${key}`
}

export function uniqueKeyTaken({ task, unique }: NewTask, owner: TaskId): BullpenError {
  return new BullpenError(
    'unique_key_taken',
    `task ${owner} has the unique key ${JSON.stringify(unique?.key)} of ${task}; enqueue again when that task has released the key, or use another onConflict`,
    { taskId: owner },
  )
}
