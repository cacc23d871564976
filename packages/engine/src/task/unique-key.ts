// Decides whether a task still has its unique key, and what happens to a new task whose key another task has.
//
// There is no second record of what a task does: the store keeps which task got a key last, and looks at that task when another
// one wants the key. Nothing is therefore released when a task starts or ends. The same decisions in Lua are in packages/bullmq
// (admission/unique-steps.ts and scripts/includes/key-owner.ts).
import { BullpenError, type TaskId, type TaskStatus } from '@bullpen/contract'
import type { NewTask, UniqueKey } from '../ports/broker.ts'

/** Until when a task has its key: until it has started, until it has ended, or until a time in ms since 1970. */
export type KeySpan = 'started' | 'finished' | number

/** The facts about a stored task that decide. */
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

/** Returns when the key of a task that is enqueued now is released. */
export function keySpan({ until }: UniqueKey, now: number): KeySpan {
  return typeof until === 'number' ? now + until : until
}

/** Returns the span of a key whose owner's start is postponed now. If both tasks want the key for a time, the time begins again. */
export function extendedSpan(span: KeySpan, { until }: UniqueKey, now: number): KeySpan {
  return typeof span === 'number' && typeof until === 'number' ? now + until : span
}

/** Returns whether a task has the key that it got with this span. `task` is undefined if the task has been deleted. */
export function hasKey(span: KeySpan, task: KeyOwner | undefined, now: number): boolean {
  if (typeof span === 'number') return now < span
  if (task === undefined || task.isEnded || task.willNotStart) return false
  return span === 'finished' || !task.hasStarted
}

/** What happens to a new task whose key another task has. `dueAt` is the other task's new start, in ms since 1970. */
export type KeyConflict =
  | { readonly action: 'existing' | 'replaced' | 'refused' }
  | { readonly action: 'extended'; readonly dueAt: number }

/** Decides what happens to a new task whose key the other task has. `other` is undefined if the other task has been deleted. */
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
