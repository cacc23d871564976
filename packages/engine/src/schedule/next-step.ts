// Decides what a schedule needs at a given time: a run, a skipped tick, a cancellation, or nothing yet. Pure.
//
// A step moves the schedule's cursor by one tick, or past the ticks that were missed. The leader repeats the decision until the
// schedule has to wait. Every step is written together with the task that it adds, and only if the schedule has not been written
// since it was read. A tick is therefore handled exactly once, even if there are several leaders.
import { isFinal, type TaskId, type TaskStatus } from '@bullpen/contract'
import { catchUpLimit, MAX_WAITING_RUNS, newestTicks, nextTick } from '@bullpen/contract/internal'
import type { ScheduleRecord } from './schedule-record.ts'

/** How late a tick may be handled before it counts as missed, in ms. Longer than the time that a new leader needs to take over. */
export const MISSED_AFTER_MS = 10_000
/** How often a schedule whose run waits for the previous one is examined, in ms. */
const POLL_MS = 1_000

export type ScheduleStep =
  | {
      readonly kind: 'wait'
      /** When to decide again, in ms since 1970. Undefined if only a request can change anything. */
      readonly until: number | undefined
      /** The run to cancel, because another one waits for its end. */
      readonly cancel?: TaskId | undefined
    }
  | {
      readonly kind: 'write'
      readonly record: ScheduleRecord
      /** The tick for which a task is enqueued, if any. */
      readonly run: number | undefined
      /** The time at which the step is due, in ms since 1970. */
      readonly dueAt: number
      readonly cancel?: TaskId | undefined
    }

/** `lastStatus` is the status of the schedule's last run, or undefined if there is no such task. */
export function nextStep(record: ScheduleRecord, lastStatus: TaskStatus | undefined, now: number): ScheduleStep {
  if (record.paused !== undefined) return { kind: 'wait', until: undefined }
  const isRunning = lastStatus !== undefined && !isFinal(lastStatus)
  const [waiting, ...others] = record.waiting
  if (waiting !== undefined && !isRunning) {
    const started = { ...withRun(record, lastStatus), waiting: others }
    return { kind: 'write', record: started, run: waiting, dueAt: waiting }
  }
  const tick = record.next
  const dueAt = tick === undefined ? undefined : tick + jitterOf(record, tick)
  if (tick === undefined || dueAt === undefined || dueAt > now) {
    if (waiting === undefined) return { kind: 'wait', until: dueAt }
    const cancel = record.overlap === 'cancel' ? record.lastRun?.id : undefined
    return { kind: 'wait', until: Math.min(now + POLL_MS, dueAt ?? Number.POSITIVE_INFINITY), cancel }
  }
  const missed = withoutMissed(record, tick, now)
  if (missed !== undefined) return { kind: 'write', record: missed, run: undefined, dueAt }
  return {
    kind: 'write',
    dueAt,
    ...handled({ ...record, ...past(record, tick) }, tick, { lastStatus, isRunning, now }),
  }
}

/** Returns when the leader has to decide about the schedule again, in ms since 1970. Undefined if only a request can change anything. */
export function wakeTime(record: ScheduleRecord, lastStatus: TaskStatus | undefined, now: number): number | undefined {
  const step = nextStep(record, lastStatus, now)
  return step.kind === 'wait' ? step.until : step.dueAt
}

/** Returns how much later than its tick a task is enqueued, in ms. The same tick always has the same jitter. */
function jitterOf({ name, cadence, jitterMs }: ScheduleRecord, tick: number): number {
  if (jitterMs === 0) return 0
  const following = nextTick(cadence, tick)
  const limit = following === undefined ? jitterMs : Math.min(jitterMs, following - tick - 1)
  return Math.floor(fraction(`${name} ${tick}`) * limit)
}

/** Returns a number from 0 to 1 that is spread evenly over different texts (FNV-1a with a final mix). */
function fraction(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/**
 * Returns the schedule without the missed ticks that its policy does not enqueue, or undefined if the tick `next` is not one of
 * them.
 */
function withoutMissed(record: ScheduleRecord, next: number, now: number): ScheduleRecord | undefined {
  const { cadence, cursor, catchUp } = record
  const dueBy = now - MISSED_AFTER_MS
  if (next + jitterOf(record, next) > dueBy) return undefined
  // No tick is due later than the following one, so only the newest tick may not have been missed yet.
  const [newest = next] = newestTicks(cadence, cursor, dueBy, 1)
  const until = newest + jitterOf(record, newest) > dueBy ? newest - 1 : dueBy
  const limit = catchUpLimit(catchUp)
  // Two ticks are at least a second apart, so there are rarely more than the limit.
  if (until - cursor <= limit * 1_000) return undefined
  const [first] = newestTicks(cadence, cursor, until, limit)
  if (first !== undefined && first <= next) return undefined
  const [dropped = next] = newestTicks(cadence, cursor, first === undefined ? until : first - 1, 1)
  return { ...record, ...past(record, dropped), missedAt: dropped }
}

function past({ cadence }: ScheduleRecord, tick: number): Pick<ScheduleRecord, 'cursor' | 'next'> {
  return { cursor: tick, next: nextTick(cadence, tick) }
}

interface TickFacts {
  readonly lastStatus: TaskStatus | undefined
  readonly isRunning: boolean
  readonly now: number
}

/** Applies the overlap policy to a tick. `record` is already past the tick. */
function handled(
  record: ScheduleRecord,
  tick: number,
  { lastStatus, isRunning, now }: TickFacts,
): { readonly record: ScheduleRecord; readonly run: number | undefined; readonly cancel?: TaskId | undefined } {
  if (!isRunning) return { record: { ...withRun(record, lastStatus), overlappingSince: undefined }, run: tick }
  const overlapping = { ...record, overlappingSince: record.overlappingSince ?? now }
  const { waiting, skipped } = overlapping
  switch (record.overlap) {
    case 'allow':
      return { record: withRun(overlapping, undefined), run: tick }
    case 'skip':
      return { record: { ...overlapping, skipped: skipped + 1 }, run: undefined }
    case 'queue': {
      if (waiting.length >= MAX_WAITING_RUNS)
        return { record: { ...overlapping, skipped: skipped + 1 }, run: undefined }
      return { record: { ...overlapping, waiting: [...waiting, tick] }, run: undefined }
    }
    case 'cancel':
      return {
        record: { ...overlapping, waiting: [tick], skipped: skipped + waiting.length },
        run: undefined,
        cancel: record.lastRun?.id,
      }
  }
}

/** Counts a run that is about to start, and how its predecessor ended. The caller sets `lastRun`. */
export function withRun(record: ScheduleRecord, lastStatus: TaskStatus | undefined): ScheduleRecord {
  return { ...record, runs: record.runs + 1, failed: failedRuns(record, lastStatus) }
}

/** Returns the failed runs up to and including the last one, if the last one failed. */
export function failedRuns(
  { failed, lastRun }: ScheduleRecord,
  lastStatus: TaskStatus | undefined,
): ScheduleRecord['failed'] {
  if (lastRun === undefined || lastStatus === undefined || !isFinal(lastStatus)) return failed
  if (lastStatus !== 'dead' && lastStatus !== 'expired') return undefined
  return { runs: (failed?.runs ?? 0) + 1, since: failed?.since ?? lastRun.tick }
}
