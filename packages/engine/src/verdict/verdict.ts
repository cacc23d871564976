// Ends an attempt: decides the verdict on its task, and creates the attempt record and the event to emit once the store has
// responded.
//
// The verdict determines what happens to the task next. No other code makes this decision, which depends only on the arguments of
// `decide`: how the attempt ended, how many attempts the retry policy still allows, when the task's total timeout expires, the
// time, and a random number. `finish` calls `decide` for an attempt that has run, and consumers carry out the verdict. The event
// is emitted only after that (see `emitSettled`), because an attempt must not be reported as ended if the store refuses its
// commit or never responds to it.
import type { AttemptRecord, CommitRefusal, OnInterrupt, RetryPolicy, TaskKind, VerdictKind } from '@bullpen/contract'
import type { Attempt } from '../attempt/attempt.ts'
import type { DecodedTask } from '../attempt/decode.ts'
import { serviceCalls } from '../breaker/service-calls.ts'
import type { AttemptResult, EndEvent, Outcome, Verdict } from '../ports/attempt-result.ts'
import type { Clock, Random } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { EventSink } from '../ports/event-sink.ts'
import { type Survival, survivalOf } from '../quarantine/decision.ts'
import { redactedDetails } from '../redaction/redactor.ts'
import { backoffMs } from './backoff.ts'
import { describeOutcome, type OutcomeDetails, outcomeOfError } from './outcome.ts'

export interface RetryContext {
  /** The number of this attempt among the attempts that count, starting from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** How many earlier attempts of the task did not count. */
  readonly uncounted: number
  /** When the total timeout expires, in ms since 1970. */
  readonly totalTimeoutAt: number | 'none'
  /** Whether no handler has ever been started for this task. */
  readonly neverStarted: boolean
  readonly onInterrupt: OnInterrupt
  /** What the attempt shows about a quarantined task. */
  readonly survival?: Survival
}

const DEAD: Verdict = Object.freeze({ kind: 'dead' })
const CANCELLED: Verdict = Object.freeze({ kind: 'cancelled' })
const EXPIRED: Verdict = Object.freeze({ kind: 'expired' })
const REQUEUED: Verdict = Object.freeze({ kind: 'requeued', throttleMs: undefined })
const LOST: Verdict = Object.freeze({ kind: 'lost' })

/** Returns the verdict on the task. `now` is in milliseconds since 1970. */
export function decide(
  context: RetryContext,
  outcome: Outcome,
  policy: RetryPolicy,
  now: number,
  random: Random,
): Verdict {
  switch (outcome.kind) {
    case 'returned':
      return { kind: 'completed', output: outcome.output }
    case 'closed':
      return outcome.reason === 'lock_lost' ? LOST : afterInterrupt(context)
    case 'stopped':
      return outcome.reason === 'slot_stopped' ? afterInterrupt(context) : CANCELLED
    case 'snoozed':
      return { kind: 'snoozed', delayMs: outcome.delayMs }
    case 'rate_limited':
      return { kind: 'requeued', throttleMs: outcome.delayMs, throttled: outcome.of }
    case 'declared':
      return outcome.failure.retryable ? retry(context, policy, now, random, outcome.failure.retryAfterMs) : DEAD
    case 'unsupported':
      return context.uncounted < MAX_PASSED_ON
        ? { kind: 'snoozed', delayMs: passOnDelayMs(context.uncounted, random) }
        : retry(context, policy, now, random)
    case 'timed_out':
      if (outcome.reason === 'queue_timeout') return EXPIRED
      if (outcome.reason === 'total_timeout') return context.neverStarted ? EXPIRED : DEAD
      return retry(context, policy, now, random)
    case 'panicked':
      if (outcome.reason === 'poison') return DEAD
      // The pool decides whether the task has died too often when it fetches the task again.
      return context.survival === 'died' ? REQUEUED : retry(context, policy, now, random)
  }
}

/**
 * Returns whether the task is dead if its handler throws this now. If the delay of a retry is random, the shortest one counts. The attempt of
 * a handler whose signal has aborted has already ended.
 */
export function endsTask(
  {
    fetched,
    decoded,
    signal,
    clock,
  }: Pick<Attempt, 'signal' | 'clock'> & {
    readonly fetched: Pick<FetchedTask, 'attempt' | 'maxAttempts'>
    readonly decoded: Pick<DecodedTask, 'definition' | 'retry' | 'totalTimeoutAt'>
  },
  thrown: unknown,
): boolean {
  if (signal.aborted) return false
  const { attempt, maxAttempts } = fetched
  const { definition, retry, totalTimeoutAt } = decoded
  const { onInterrupt } = definition
  // A worker that calls a handler supports the task, so the number of uncounted attempts does not matter.
  const context = { attempt, maxAttempts, uncounted: 0, totalTimeoutAt, neverStarted: false, onInterrupt }
  return decide(context, outcomeOfError(thrown, definition), retry, clock.now(), () => 0).kind === 'dead'
}

/** Returns whether an attempt with this verdict uses up one of the attempts that the retry policy allows. */
export function countsAsAttempt({ kind }: Verdict): boolean {
  return kind !== 'requeued' && kind !== 'snoozed' && kind !== 'lost'
}

/**
 * How often a task is left to another worker, without counting the attempt, because a worker cannot run it. That takes about an hour, which
 * is longer than a rolling deploy. Then its attempts count, so that a task which no worker can run does not stay forever.
 */
const MAX_PASSED_ON = 150
const PASS_ON_MS = { first: 1_000, longest: 30_000 } as const

/** Returns for how long a task waits for another worker, in ms. */
function passOnDelayMs(uncounted: number, random: Random): number {
  const delayMs = Math.min(PASS_ON_MS.first * 2 ** uncounted, PASS_ON_MS.longest)
  return Math.round(delayMs * (0.5 + random() / 2))
}

function afterInterrupt({ onInterrupt }: RetryContext): Verdict {
  return onInterrupt === 'fail' ? DEAD : REQUEUED
}

function retry(
  { attempt, maxAttempts, totalTimeoutAt }: RetryContext,
  policy: RetryPolicy,
  now: number,
  random: Random,
  retryAfterMs = 0,
): Verdict {
  if (attempt >= maxAttempts) return DEAD
  const delayMs = Math.max(backoffMs(attempt, policy.backoff, random), retryAfterMs)
  // If the total timeout expires before the next attempt could start, waiting for that attempt would be pointless.
  if (totalTimeoutAt !== 'none' && now + delayMs >= totalTimeoutAt) return DEAD
  return { kind: 'retrying', delayMs }
}

/** What `finish` needs to end an attempt. */
export interface VerdictHost {
  readonly clock: Clock
  readonly sink: EventSink
  readonly random: Random
  readonly queue: string
  /** The host and process id of this worker, for the attempt record. */
  readonly worker: string
  /** The number of the slot that runs the attempt, for the attempt record. By default, the record does not contain a slot. */
  readonly slot?: number
}

const LOCK_LOST: Outcome = Object.freeze({ kind: 'closed', reason: 'lock_lost' })

/** Ends an attempt: decides the verdict, and creates the attempt record and the event. */
export function finish(attempt: Attempt, outcome: Outcome, host: VerdictHost): AttemptResult {
  const { fetched: task, decoded, startedAtMonotonic } = attempt
  const { definition, retry, totalTimeoutAt } = decoded
  const endedAt = host.clock.monotonic()
  const now = host.clock.at(endedAt)
  const final = attempt.hasLostLock ? LOCK_LOST : limitSnooze(outcome, decoded, now)
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
 * Returns the outcome unchanged, unless it is a snooze that would outlast the total timeout. Such a snooze ends the task instead.
 */
function limitSnooze(outcome: Outcome, { timeouts: { totalMs }, totalTimeoutAt }: DecodedTask, now: number): Outcome {
  if (outcome.kind !== 'snoozed' || totalTimeoutAt === 'none' || totalMs === 'none') return outcome
  return now + outcome.delayMs < totalTimeoutAt
    ? outcome
    : { kind: 'timed_out', reason: 'total_timeout', limitMs: totalMs }
}

/**
 * Returns the event to emit once the store has carried out the verdict. For the verdict `lost`, there is nothing to carry out. `now` is
 * when the attempt ended, in ms since 1970.
 */
export function endEvent(
  task: FetchedTask,
  kind: TaskKind,
  correlationId: string | undefined,
  { state, reason, code, error }: OutcomeDetails,
  verdict: Verdict,
  durationMs: number,
  now: number,
  { queue }: VerdictHost,
): EndEvent {
  const { id, fencingToken, attempt } = task
  // Every short task takes this path, so the common case creates only one object.
  if (verdict.kind !== 'lost') {
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
      verdict: verdict.kind,
      delayMs: delayOf(verdict),
      taskMs: ENDS_TASK[verdict.kind] ? now - task.enqueuedAt : undefined,
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
  { clock, worker, slot }: VerdictHost,
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
