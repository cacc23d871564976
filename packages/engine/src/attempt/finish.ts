// Ends an attempt that has run: creates the attempt record and the event to emit once the store has responded.
//
// `decide` (verdict/verdict.ts) makes the decision. The event is emitted only after the consumer has carried out the verdict (see
// `emitSettled`), because an attempt must not be reported as ended if the store refuses its commit or never responds to it.
import type { AttemptRecord, CommitRefusal, TaskKind, VerdictKind } from '@bullpen/contract'
import { serviceCalls } from '../breaker/service-calls.ts'
import type { AttemptResult, EndEvent, Outcome, Verdict } from '../ports/attempt-result.ts'
import type { Clock, Random } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { EventSink } from '../ports/event-sink.ts'
import { survivalOf } from '../quarantine/decision.ts'
import { redactedDetails } from '../redaction/redactor.ts'
import { describeOutcome, type OutcomeDetails } from '../verdict/outcome.ts'
import { countsAsAttempt, decide } from '../verdict/verdict.ts'
import type { Attempt } from './attempt.ts'
import type { DecodedTask } from './decode.ts'

/** What `finish` needs to end an attempt. */
export interface FinishHost {
  readonly clock: Clock
  readonly sink: EventSink
  readonly random: Random
  readonly queue: string
  /** The host and process id of this worker, for the attempt record. */
  readonly worker: string
  /** The number of the slot that runs the attempt, for the attempt record. By default, the record does not contain a slot. */
  readonly slot?: number
  /** Returns whether an uncaught error has left the process in an unknown state. The process then ends. Defaults to false. */
  readonly isBroken?: () => boolean
}

const LOCK_LOST: Outcome = Object.freeze({ kind: 'closed', reason: 'lock_lost' })

/** Ends an attempt: decides the verdict, and creates the attempt record and the event. */
export function finish(attempt: Attempt, outcome: Outcome, host: FinishHost): AttemptResult {
  const { fetched: task, decoded, startedAtMonotonic } = attempt
  const { definition, retry, totalTimeoutAt } = decoded
  const endedAt = host.clock.monotonic()
  const now = host.clock.at(endedAt)
  const final = attempt.hasLostLock ? LOCK_LOST : limitSnooze(lostIfBroken(outcome, host), decoded, now)
  const described = describeOutcome(final)
  const redactor = described.message === undefined ? undefined : attempt.redactor
  const details = redactor === undefined ? described : redactedDetails(described, redactor)
  attempt.moveTo(details.state)
  const { attempt: number, maxAttempts } = task
  const { onInterrupt } = definition
  const { quarantine, apart } = task
  const survival =
    quarantine === undefined || apart === undefined || apart === 'poison' ? undefined : survivalOf(final, apart)
  const uncounted = task.fencingToken - number
  const context = {
    attempt: number,
    maxAttempts,
    uncounted,
    totalTimeoutAt,
    neverStarted: false,
    onInterrupt,
    survival,
  }
  const verdict = decide(context, final, retry, now, host.random)
  const durationMs = endedAt - startedAtMonotonic
  const calls = serviceCalls(definition, final, durationMs)
  return {
    event: endEvent(task, definition.kind, decoded.correlationId, details, verdict, durationMs, now, host),
    record: toRecord(task, details, verdict, startedAtMonotonic, endedAt, host),
    verdict,
    error: details.error,
    budget: retry.budget,
    totalTimeoutAt,
    ...(survival !== undefined && { survival }),
    ...(calls !== undefined && { calls }),
    ...(attempt.hasRegistered && { hasRegistered: true as const }),
    ...(verdict.kind === 'completed' && attempt.followUps !== undefined && { followUps: attempt.followUps }),
  }
}

/**
 * Returns the outcome unchanged, unless the end of a broken process has interrupted the attempt. Any task that the process ran may have
 * broken it, so the end of the process counts as a death: the task is left as if the process had been killed.
 */
function lostIfBroken(outcome: Outcome, { isBroken }: FinishHost): Outcome {
  const isInterrupted =
    (outcome.kind === 'closed' && outcome.reason !== 'lock_lost') ||
    (outcome.kind === 'stopped' && outcome.reason === 'slot_stopped')
  if (!isInterrupted || isBroken?.() !== true) return outcome
  return {
    kind: 'panicked',
    reason: 'process_lost',
    error: new Error('an uncaught error outside any attempt ended the worker'),
  }
}

/**
 * Returns the outcome unchanged, unless it is a snooze that would outlast the total timeout. Such a snooze ends the task instead.
 */
function limitSnooze(outcome: Outcome, { timeouts: { totalMs }, totalTimeoutAt }: DecodedTask, now: number): Outcome {
  if (outcome.kind !== 'snoozed' || totalTimeoutAt === 'none' || totalMs === 'none') return outcome
  return now + outcome.delayMs < totalTimeoutAt
    ? outcome
    : { kind: 'timed_out', reason: 'total_timeout', limitMs: totalMs }
}

/**
 * Returns the event to emit once the store has carried out the verdict. For the verdict `lost`, there is nothing to carry out: another
 * process requeues the task if this one has ended, or owns it already. `now` is when the attempt ended, in ms since 1970.
 */
export function endEvent(
  task: FetchedTask,
  kind: TaskKind,
  correlationId: string | undefined,
  { state, reason, code, error }: OutcomeDetails,
  verdict: Verdict,
  durationMs: number,
  now: number,
  { queue }: FinishHost,
): EndEvent {
  const { id, fencingToken, attempt } = task
  // Every short task takes this path, so the common case creates only one object.
  const kindOfVerdict = verdict.kind === 'lost' && reason === 'process_lost' ? 'requeued' : verdict.kind
  if (kindOfVerdict !== 'lost') {
    return {
      event: 'attempt.ended',
      queue,
      task: task.task,
      id,
      kind,
      fencingToken,
      attempt,
      correlationId,
      state,
      reason,
      code,
      error,
      durationMs,
      verdict: kindOfVerdict,
      delayMs: delayOf(verdict),
      taskMs: ENDS_TASK[kindOfVerdict] ? now - task.enqueuedAt : undefined,
    }
  }
  const about = { queue, task: task.task, id, kind, fencingToken, attempt, correlationId }
  const end = { state, reason, code, error, durationMs }
  return { event: 'attempt.commit_refused', ...about, ...end, refusal: 'lock_lost', verdict: undefined }
}

/** Emits the event for an attempt whose commit has settled. */
export function emitSettled({ event }: AttemptResult, refusal: CommitRefusal | undefined, sink: EventSink): void {
  if (refusal === undefined || event.event === 'attempt.commit_refused') {
    sink(event)
    return
  }
  const { delayMs: _, taskMs: __, ...about } = event
  sink({ ...about, event: 'attempt.commit_refused', refusal })
}

const ENDS_TASK: Readonly<Record<VerdictKind, boolean>> = {
  completed: true,
  dead: true,
  cancelled: true,
  expired: true,
  retrying: false,
  requeued: false,
  snoozed: false,
}

function delayOf(verdict: Verdict): number | undefined {
  if (verdict.kind === 'requeued') return verdict.throttleMs
  return verdict.kind === 'retrying' || verdict.kind === 'snoozed' ? verdict.delayMs : undefined
}

export function toRecord(
  { fencingToken, attempt }: Pick<FetchedTask, 'fencingToken' | 'attempt'>,
  { state, reason, code, message, by }: OutcomeDetails,
  verdict: Verdict,
  startedAt: number,
  endedAt: number,
  { clock, worker, slot }: FinishHost,
): AttemptRecord {
  const record: AttemptRecord = {
    fencingToken,
    attempt,
    counted: fencingToken > 0 && countsAsAttempt(verdict),
    state,
    worker,
    startedAt: Math.round(clock.at(startedAt)),
    endedAt: Math.round(clock.at(endedAt)),
  }
  if (slot !== undefined) record.slot = slot
  if (state === 'DONE_SUCCESS') return record
  if (reason !== undefined) record.reason = reason
  if (code !== undefined) record.code = code
  if (message !== undefined) record.message = message
  if (by !== undefined) record.by = by
  return record
}
