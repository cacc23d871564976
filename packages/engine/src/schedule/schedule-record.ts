// Defines what is stored of a schedule, and how requests change it. Pure: the time is passed in, in ms since 1970.
import type {
  Cadence,
  CatchUp,
  Overlap,
  ScheduleDefinition,
  ScheduledTaskOptions,
  ScheduleSource,
  TaskId,
} from '@bullpen/contract'
import { nextTick } from '@bullpen/contract/internal'
import { followUpLines } from '../follow-ups/template.ts'
import type { NewTask } from '../ports/broker/new-task.ts'
import { newTask } from '../task/new-task.ts'

/** What all tasks of a schedule have in common. It is made from the task's definition when the schedule is stored. */
export type TaskTemplate = Omit<
  NewTask,
  | 'id'
  | 'enqueuedAt'
  | 'expiresAt'
  | 'caller'
  | 'idempotency'
  | 'unique'
  | 'limits'
  | 'apiKeyName'
  | 'delayMs'
  | 'correlationId'
> & {
  /** How long a task may wait before it expires, in ms: the call's queue timeout or the definition's. */
  readonly expiresInMs: number | undefined
}

export interface ScheduleRecord {
  readonly name: string
  readonly queue: string
  readonly cadence: Cadence
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  readonly jitterMs: number
  /** The options of the schedule's tasks, as the request or the definition gave them. */
  readonly call: ScheduledTaskOptions
  readonly template: TaskTemplate
  /** Whether a running task can be stopped: true for long tasks, false for short ones. */
  readonly stoppable: boolean
  readonly source: ScheduleSource
  readonly createdAt: number
  readonly changedAt: number
  readonly changedBy: string
  readonly paused?: { readonly at: number; readonly by: string } | undefined
  /** All ticks up to this time have been handled. */
  readonly cursor: number
  /** The first tick after the cursor. */
  readonly next?: number | undefined
  /** The ticks whose runs wait for the previous run to end. */
  readonly waiting: readonly number[]
  readonly lastRun?: { readonly id: TaskId; readonly tick: number; readonly at: number } | undefined
  readonly runs: number
  readonly skipped: number
  /** The newest missed tick for which no task was enqueued. */
  readonly missedAt?: number | undefined
  /** The unbroken series of failed runs before the last run: how many runs, and the tick of the first. */
  readonly failed?: { readonly runs: number; readonly since: number } | undefined
  /** Since when every tick has found the previous run unfinished. */
  readonly overlappingSince?: number | undefined
  /**
   * Set if this process cannot decode the template's input and follow-ups, which are then missing. A write stores them in encoded form,
   * unchanged.
   */
  readonly unreadableInput?: UnreadableInput | undefined
}

export interface UnreadableInput {
  readonly encoded: unknown
  /** The encoded follow-ups of the template, if it has any. */
  readonly encodedFollowUps?: unknown
  readonly reason: string
}

/** The labels that tell a handler which tick it serves. */
export const SCHEDULE_LABELS = { name: 'bullpen.schedule', tick: 'bullpen.tick' } as const

/** Returns the tag of a schedule's tasks. */
export function scheduleTag(name: string): string {
  return `schedule:${name}`
}

/** What a definition determines. */
export type ScheduleSettings = Pick<
  ScheduleRecord,
  'name' | 'queue' | 'cadence' | 'overlap' | 'catchUp' | 'jitterMs' | 'call' | 'template' | 'stoppable'
>

/**
 * @throws BullpenError `invalid_duration` or `invalid_request`, if the options contradict the task's definition, `invalid_follow_up`, or
 * `payload_too_large` if the follow-ups of the definition exceed 64 KiB.
 */
export function settingsOf(definition: ScheduleDefinition): ScheduleSettings {
  const { name, task, input, cadence, overlap, catchUp, jitterMs, call } = definition
  const tags = [...(call.tags ?? []), scheduleTag(name)]
  const created = newTask(task, input, { ...call, tags }, { id: '' as TaskId, enqueuedAt: 0, correlationId: undefined })
  followUpLines(created.followUps)
  const {
    id: _id,
    enqueuedAt: _at,
    expiresAt,
    caller: _caller,
    idempotency: _idempotency,
    unique: _unique,
    limits: _limits,
    apiKeyName: _apiKeyName,
    delayMs: _delayMs,
    correlationId: _correlationId,
    ...template
  } = created
  return {
    name,
    queue: task.queue,
    cadence,
    overlap,
    catchUp,
    jitterMs,
    call,
    template: { ...template, expiresInMs: expiresAt },
    stoppable: task.kind === 'long',
  }
}

/** Returns the task for one tick. A request to run the schedule now passes its own time as the tick. */
export function scheduledTask({ name, template }: ScheduleRecord, id: TaskId, tick: number, now: number): NewTask {
  const { expiresInMs, ...task } = template
  const labels = { [SCHEDULE_LABELS.name]: name, [SCHEDULE_LABELS.tick]: new Date(tick).toISOString() }
  return {
    ...task,
    id,
    enqueuedAt: now,
    meta: { ...task.meta, ...labels },
    delayMs: undefined,
    correlationId: undefined,
    expiresAt: expiresInMs === undefined ? undefined : now + expiresInMs,
  }
}

export interface ScheduleAuthor {
  readonly source: ScheduleSource
  readonly by: string
  readonly now: number
}

export function createdRecord(settings: ScheduleSettings, { source, by, now }: ScheduleAuthor): ScheduleRecord {
  const times = { createdAt: now, changedAt: now, changedBy: by }
  return { ...settings, source, ...times, ...startAfter(settings.cadence, now), waiting: [], runs: 0, skipped: 0 }
}

/**
 * Returns the schedule with other settings, among them its input. A schedule that came from a catalogue remains the catalogue's, so
 * the next sync restores its settings.
 */
export function changedRecord(
  record: ScheduleRecord,
  settings: ScheduleSettings,
  { source, by, now }: ScheduleAuthor,
): ScheduleRecord {
  const keepsTicks = JSON.stringify(record.cadence) === JSON.stringify(settings.cadence)
  const { unreadableInput: _, ...readable } = record
  return {
    ...readable,
    ...settings,
    source: record.source === 'catalogue' ? 'catalogue' : source,
    changedAt: now,
    changedBy: by,
    ...(keepsTicks ? {} : startAfter(settings.cadence, now)),
  }
}

export function pausedRecord(record: ScheduleRecord, { by, now }: { by: string; now: number }): ScheduleRecord {
  return record.paused === undefined ? { ...record, paused: { at: now, by } } : record
}

/** Ticks that passed during the pause are not missed. */
export function resumedRecord(record: ScheduleRecord, { by, now }: { by: string; now: number }): ScheduleRecord {
  if (record.paused === undefined) return record
  const { paused: _, ...active } = record
  return { ...active, changedAt: now, changedBy: by, ...startAfter(record.cadence, now) }
}

function startAfter(cadence: Cadence, now: number): Pick<ScheduleRecord, 'cursor' | 'next'> {
  return { cursor: now, next: nextTick(cadence, now) }
}
