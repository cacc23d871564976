// Remembers which task got each unique key last, for the memory broker.
import { isFinal, type TaskId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import {
  type Clock,
  extendedSpan,
  hasKey,
  type KeyConflict,
  type KeyOwner,
  type KeySpan,
  keySpan,
  nameOfKey,
  resolveConflict,
} from '@bullpen/engine/internal'
import { type StoredTask, statusOf } from '../store/stored-task.ts'

interface Entry {
  readonly id: TaskId
  readonly span: KeySpan
}

/** Another task that has the key of a new one, and what happens to the new one. */
export interface FoundConflict {
  readonly id: TaskId
  readonly decided: KeyConflict
}

export class UniqueKeys {
  readonly #clock: Clock
  readonly #find: (id: TaskId) => StoredTask | undefined
  readonly #entries = new Map<string, Entry>()

  constructor(clock: Clock, find: (id: TaskId) => StoredTask | undefined) {
    this.#clock = clock
    this.#find = find
  }

  /** Decides what happens to a new task if another one has its key. Returns undefined if no other task has it. */
  conflict(task: NewTask): FoundConflict | undefined {
    const { unique, enqueuedAt, delayMs = 0 } = task
    const name = nameOf(task)
    const entry = name === undefined ? undefined : this.#entries.get(name)
    if (name === undefined || entry === undefined || unique === undefined) return undefined
    const { id, span } = entry
    const other = this.#find(id)
    const now = this.#clock.now()
    const owner = other && ownerOf(other, now)
    if (!hasKey(span, owner, now)) return undefined
    const decided = resolveConflict(unique, enqueuedAt + delayMs, owner)
    if (decided.action === 'extended') this.#entries.set(name, { ...entry, span: extendedSpan(span, unique, now) })
    return { id, decided }
  }

  /** Gives the key to a task that is being stored. */
  take(task: NewTask): void {
    const name = nameOf(task)
    if (name === undefined || task.unique === undefined) return
    this.#entries.set(name, { id: task.id, span: keySpan(task.unique, this.#clock.now()) })
  }
}

function nameOf({ queue, task, unique }: NewTask): string | undefined {
  return unique && `${queue} ${nameOfKey(task, unique)}`
}

function ownerOf(task: StoredTask, now: number): KeyOwner {
  const status = statusOf(task)
  const { fencingToken, expiresAt, enqueuedAt, dueAt } = task
  const hasStarted = fencingToken > 0
  return {
    status,
    hasStarted,
    willNotStart: !hasStarted && expiresAt !== undefined && expiresAt <= now,
    isEnded: isFinal(status),
    enqueuedAt,
    dueAt,
  }
}
