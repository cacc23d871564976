// Describes what happened to a task as events. Pure.
import { ATTEMPT_STATE_LABELS, type AttemptRecord, type Progress, type TaskGroup } from '@bullpen/contract'
import { type EVENT_LOG_LEVELS, type EventBody, MAX_EVENT_TEXT, MAX_LOG_EVENT_BYTES } from '@bullpen/contract/internal'
import { toPortable } from '../attempt/portable-error.ts'
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import { tagsOf } from '../task/cancel-filter.ts'

/** What every event says of its task. */
export interface AboutTask {
  readonly task: string
  readonly tags?: string[]
  readonly group?: TaskGroup
}

/** What the events of an attempt say of it. */
export interface AboutAttempt extends AboutTask {
  readonly attempt: number
  readonly fencingToken: number
}

export function aboutTask(task: string, tags: readonly string[] | undefined, group: TaskGroup | undefined): AboutTask {
  const about: AboutTask = tags === undefined || tags.length === 0 ? { task } : { task, tags: [...tags] }
  return group === undefined ? about : { ...about, group }
}

/** Returns what the events of a stored task say of it. The stored envelope may be malformed. */
export function aboutStored(task: string, envelope: unknown): AboutTask {
  return aboutTask(task, tagsOf(envelope), groupOf(envelope))
}

export function enqueuedEvent({ task, tags, group, enqueuedAt, delayMs }: NewTask): EventBody {
  return {
    type: 'enqueued',
    ...aboutTask(task, tags, group),
    ...(delayMs !== undefined && { dueAt: enqueuedAt + delayMs }),
  }
}

export function startedEvent(about: AboutAttempt, worker: string): EventBody {
  return { type: 'started', ...about, worker }
}

export function progressEvent(about: AboutAttempt, { fraction, note }: Progress): EventBody {
  return { type: 'progress', ...about, fraction, ...(note !== undefined && { note: cut(note, MAX_EVENT_TEXT) }) }
}

export interface LogLine {
  /** The line's number in its attempt, starting from 1. */
  readonly line: number
  readonly level: (typeof EVENT_LOG_LEVELS)[number]
  readonly fields: object
  readonly message: string
}

/** If the fields are not JSON or take too much room, the event does not contain them. A long message is cut off. */
export function logEvent(about: AboutAttempt, { line, level, fields, message }: LogLine): EventBody {
  const text = cutBytes(message, MAX_LOG_EVENT_BYTES)
  const kept = jsonFields(fields, MAX_LOG_EVENT_BYTES - byteLength(text))
  return { type: 'log', ...about, line, level, message: text, ...(kept !== undefined && { fields: kept }) }
}

/**
 * Returns the event that the script adds which carries out an attempt's verdict. `now` is in ms since 1970. A retry may be due
 * later than the event says if its budget requires that, so the store sets the time itself. Returns undefined for the verdict
 * `lost`, because another attempt owns the task.
 */
export function verdictEvent(about: AboutAttempt, result: AttemptResult, now: number): EventBody | undefined {
  const { verdict, record } = result
  const end = endOf(record)
  const { attempt: _attempt, fencingToken: _token, ...aboutTask } = about
  switch (verdict.kind) {
    case 'lost':
      return undefined
    case 'retrying':
      return { type: 'retrying', ...about, ...end, dueAt: now + verdict.delayMs }
    case 'snoozed':
      return { type: 'requeued', ...about, ...end, dueAt: now + verdict.delayMs }
    case 'requeued':
      return { type: 'requeued', ...about, ...end }
    case 'completed':
    case 'dead':
    case 'cancelled':
    case 'expired':
      // If the fencing token is 0, no handler was started.
      return {
        type: 'ended',
        ...(record.fencingToken > 0 ? about : aboutTask),
        ...end,
        status: verdict.kind,
        ...(record.by !== undefined && { by: record.by }),
      }
  }
}

/** Returns the outcome and the error of an attempt. */
export function endOf({
  state,
  code,
  reason,
  message,
}: AttemptRecord): Pick<Extract<EventBody, { type: 'ended' }>, 'outcome' | 'error'> {
  const outcome = ATTEMPT_STATE_LABELS[state]
  if (state === 'DONE_SUCCESS') return { outcome }
  return {
    outcome,
    error: { code: code ?? reason ?? state.toLowerCase(), message: cut(message ?? '', MAX_EVENT_TEXT) },
  }
}

function groupOf(envelope: unknown): TaskGroup | undefined {
  if (typeof envelope !== 'object' || envelope === null || !('group' in envelope)) return undefined
  const { group } = envelope
  const isGroup =
    typeof group === 'object' && group !== null && 'id' in group && 'member' in group && typeof group.id === 'string'
  return isGroup ? (group as TaskGroup) : undefined
}

/** Cuts off a text that is too long. */
function cut(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters - 1)}…`
}

const encoder = new TextEncoder()

function byteLength(text: string): number {
  return encoder.encode(JSON.stringify(text)).length
}

function cutBytes(text: string, maxBytes: number): string {
  if (text.length * 6 <= maxBytes || byteLength(text) <= maxBytes) return text
  let length = Math.min(text.length, maxBytes)
  // JSON escapes some characters as up to six bytes.
  while (length > 0 && byteLength(text.slice(0, length)) > maxBytes - 3) length = Math.floor(length * 0.8)
  return `${text.slice(0, length)}…`
}

function jsonFields(fields: object, maxBytes: number): Record<string, unknown> | undefined {
  try {
    // An error has no JSON of its own, and its stack would take too much room.
    const json = JSON.stringify(fields, (_, value) => (value instanceof Error ? shortError(value) : value))
    if (json === undefined || json === '{}' || !json.startsWith('{')) return undefined
    return encoder.encode(json).length <= maxBytes ? JSON.parse(json) : undefined
  } catch {
    // The handler's fields may contain a cycle, a bigint or a getter that throws.
    return undefined
  }
}

function shortError(error: Error): object {
  const { name, message, code } = toPortable(error)
  return { name, message, code }
}
