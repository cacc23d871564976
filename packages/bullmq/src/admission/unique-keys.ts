// Encodes a task's unique key for the script that adds the task (../store/lua/includes/add/unique-keys.lua), and decodes its reply if
// another task has the key.
import type { EnqueueAction, Enqueued, OnConflict, TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { nameOfKey, uniqueKeyTaken } from '@bullpen/engine/internal'

const CONFLICT_CODES = { keep: 'k', replace: 'r', extend: 'x', error: 'e' } as const satisfies Record<
  OnConflict,
  string
>

/** Encodes the task's field. */
export function encodeUnique(task: NewTask): string {
  const { unique, enqueuedAt, delayMs = 0 } = task
  if (unique === undefined) return ''
  const { until, onConflict, maxDelayMs = 0 } = unique
  const span = typeof until === 'number' ? until : SPAN_CODES[until]
  return `${span} ${CONFLICT_CODES[onConflict]} ${enqueuedAt + delayMs} ${maxDelayMs} ${nameOfKey(task.task, unique)}`
}

const SPAN_CODES = { started: 's', finished: 'f' } as const

/** What the call did, the other task's id, and its status, or '' if it has been deleted. */
export type ConflictReply = readonly [outcome: 'existing' | 'extended' | 'taken', id: TaskId, status: TaskStatus | '']

/** Decodes the reply. @throws BullpenError `unique_key_taken`. */
export function decodeConflict(task: NewTask, [outcome, id, status]: ConflictReply): Enqueued {
  if (outcome === 'taken') throw uniqueKeyTaken(task, id)
  return { id, action: outcome satisfies EnqueueAction, status: status === '' ? undefined : status }
}
