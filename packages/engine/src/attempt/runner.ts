// The runner: one attempt as a pipeline of named steps, from a taken task to an ending and a verdict.
import { type AttemptRecord, DEFAULT_RETRY, type RetryPolicy, TaskError, type TaskKind } from '@bullpen/contract'
import type { Slot } from '../pool/slot.ts'
import type { AttemptResult, CloseReason, Outcome, Verdict } from '../ports/attempt-result.ts'
import type { Random } from '../ports/clock.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import { Attempt, type AttemptHost } from './attempt.ts'
import { type DecodedTask, decodeTask } from './decode.ts'
import { InterruptibleRun, type InterruptibleRunHost } from './interruptible-run.ts'
import { IsolateEnded } from './isolated-handler.ts'
import { declaredFailure, describeOutcome, type OutcomeDetails, outcomeOfThrow } from './outcome.ts'
import { checkOutput } from './output.ts'
import { countsAsAttempt, decide, type RetryContext } from './verdict.ts'

/** What a pool gives to every attempt that it runs. */
export interface RunnerHost extends AttemptHost, InterruptibleRunHost {
  readonly random: Random
  /** Why the pool lets nothing start any more; undefined while it does. */
  readonly closedBy: () => CloseReason | undefined
  readonly queue: string
  /** This worker, for the record: host and worker id. */
  readonly worker: string
}

/**
 * Runs one attempt to its end; at once when its handler returns at once. Neither throws nor rejects: whatever the handler
 * does becomes an outcome. Emits `attempt.started` and `attempt.ended`, and `attempt.late` when the handler comes back
 * after its attempt has ended.
 *
 * Steps: read → look whether it may start → begin → call (a long handler that waits: timed, interruptible) → check the
 * output → conclude.
 */
export function runAttempt(taken: FetchedTask, slot: Slot, host: RunnerHost): AttemptResult | Promise<AttemptResult> {
  const reading = decodeTask(taken, host.registry)
  return reading instanceof TaskError
    ? rejectBeforeStart(taken, undefined, declaredFailure(reading), slot, host)
    : runDecoded(taken, reading, slot, host)
}

/** As {@link runAttempt}, of a task that has been read. */
export function runDecoded(
  taken: FetchedTask,
  reading: DecodedTask,
  slot: Slot,
  host: RunnerHost,
): AttemptResult | Promise<AttemptResult> {
  const beganAt = host.clock.monotonic()
  const tooLate = startBlocker(taken, reading, beganAt, host)
  if (tooLate !== undefined) return rejectBeforeStart(taken, reading, tooLate, slot, host)
  const attempt = begin(taken, reading, beganAt, host)
  const outcome = call(attempt, slot, host)
  return outcome instanceof Promise
    ? outcome.then((late) => finish(attempt, late, slot, host))
    : finish(attempt, outcome, slot, host)
}

/** What stands in the way of a start: a closed pool, a queue timeout or a deadline that has passed. */
function startBlocker(taken: FetchedTask, reading: DecodedTask, at: number, host: RunnerHost): Outcome | undefined {
  const closed = host.closedBy()
  if (closed !== undefined) return { kind: 'closed', reason: closed }
  if (taken.cancelled !== undefined) return { kind: 'stopped', ...taken.cancelled }
  const { queueMs, totalMs } = reading.timeouts
  if (queueMs === 'none' && totalMs === 'none') return undefined
  const now = host.clock.at(at)
  if (queueMs !== 'none' && taken.readyAt !== undefined && now >= taken.readyAt + queueMs) {
    return { kind: 'timed_out', reason: 'queue_timeout', limitMs: queueMs }
  }
  if (totalMs !== 'none' && now >= taken.enqueuedAt + totalMs) {
    return { kind: 'timed_out', reason: 'total_timeout', limitMs: totalMs }
  }
  return undefined
}

function begin(taken: FetchedTask, reading: DecodedTask, beganAt: number, host: RunnerHost): Attempt {
  const attempt = new Attempt(taken, reading, beganAt, host)
  attempt.moveTo('IN_PROCESS')
  const { queue, sink, clock } = host
  const { task, id, fencingToken, attempt: number } = taken
  sink({
    event: 'attempt.started',
    queue,
    task,
    id,
    kind: reading.runnable.definition.kind,
    fencingToken,
    attempt: number,
    correlationId: reading.correlationId,
    waitedMs: waitedMs(taken, clock.at(beganAt)),
  })
  return attempt
}

/** Calls the handler. Neither throws nor rejects; a promise only where the handler gave one. */
function call(attempt: Attempt, slot: Slot, host: RunnerHost): Outcome | Promise<Outcome> {
  const { decoded } = attempt
  try {
    const returned = host.context.run(attempt, decoded.runnable.handle)
    if (!isThenable(returned)) return checkOutput(returned, decoded.runnable.definition, host.maxOutputBytes)
    const outcome = settle(returned, decoded, host)
    return decoded.runnable.definition.kind === 'short'
      ? // It can't be interrupted: what escaped it is its outcome when it ends, whatever it returned.
        outcome.then((late) => attempt.uncaught ?? late)
      : timed(outcome, attempt, slot, host)
  } catch (thrown) {
    return failed(thrown, decoded)
  }
}

async function settle(returned: PromiseLike<unknown>, reading: DecodedTask, host: RunnerHost): Promise<Outcome> {
  try {
    return checkOutput(await returned, reading.runnable.definition, host.maxOutputBytes)
  } catch (thrown) {
    return failed(thrown, reading)
  }
}

/** A classifier that itself throws has found nothing: its own error is what an engineer should look at. */
function failed(thrown: unknown, { runnable }: DecodedTask): Outcome {
  if (thrown instanceof IsolateEnded) return thrown.outcome
  try {
    return outcomeOfThrow(thrown, runnable.definition.classify)
  } catch (cause) {
    const error = new Error(`the classifier of ${runnable.definition.name} threw: ${String(cause)}`, { cause })
    return { kind: 'panicked', reason: 'unexpected_error', error }
  }
}

/** Not `instanceof Promise`: query builders and promises of other realms are awaited too. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function timed(returned: Promise<Outcome>, attempt: Attempt, slot: Slot, host: RunnerHost): Promise<Outcome> {
  const { fetched, decoded } = attempt
  const deadlineAt = deadlineOf(fetched, decoded)
  const { clock } = host
  const run = new InterruptibleRun(
    returned,
    attempt,
    slot,
    decoded.timeouts,
    deadlineAt === 'none' ? 'none' : attempt.startedAtMonotonic + (deadlineAt - clock.at(attempt.startedAtMonotonic)),
    host,
  )
  run.onLate = (overrunMs) => {
    const { kind } = decoded.runnable.definition
    host.sink({ event: 'attempt.late', ...eventFields(fetched, kind, decoded.correlationId, host), overrunMs })
  }
  return run.outcome
}

const LOCK_LOST: Outcome = Object.freeze({ kind: 'closed', reason: 'lock_lost' })

function finish(attempt: Attempt, outcome: Outcome, slot: Slot, host: RunnerHost): AttemptResult {
  const { fetched, decoded, startedAtMonotonic } = attempt
  const { clock } = host
  const endedAt = clock.monotonic()
  const inTime = attempt.hasLostLock ? LOCK_LOST : capSnooze(fetched, decoded, outcome, clock.at(endedAt))
  const ending = describeOutcome(inTime)
  attempt.moveTo(ending.state)
  const { definition } = decoded.runnable
  const verdict = decide(retryContext(fetched, decoded), inTime, definition.retry, clock.at(endedAt), host.random)
  emitEnded(fetched, definition.kind, decoded.correlationId, ending, verdict, endedAt - startedAtMonotonic, host)
  return {
    record: toRecord(fetched, ending, verdict, startedAtMonotonic, endedAt, slot, host),
    verdict,
    error: ending.error,
  }
}

/** A snooze beyond the end of the task's life is that end. */
function capSnooze(taken: FetchedTask, reading: DecodedTask, outcome: Outcome, now: number): Outcome {
  const deadlineAt = deadlineOf(taken, reading)
  if (outcome.kind !== 'snoozed' || deadlineAt === 'none' || now + outcome.delayMs < deadlineAt) return outcome
  return { kind: 'timed_out', reason: 'total_timeout', limitMs: deadlineAt - taken.enqueuedAt }
}

/** A task that can't be read, or may not start, reaches no handler; but its attempt begins and ends, and is told. */
function rejectBeforeStart(
  taken: FetchedTask,
  reading: DecodedTask | undefined,
  outcome: Outcome,
  slot: Slot,
  host: RunnerHost,
): AttemptResult {
  const at = host.clock.monotonic()
  const now = host.clock.at(at)
  const definition = host.registry.get(taken.task)?.definition
  const kind = definition?.kind ?? 'long'
  const policy: RetryPolicy = definition?.retry ?? DEFAULT_RETRY
  const ending = describeOutcome(outcome)
  // Whatever its definition says: nothing of it has happened.
  const count: RetryContext = {
    ...retryContext(taken, reading),
    onInterrupt: 'requeue',
    neverStarted: taken.fencingToken === 1,
  }
  const verdict = decide(count, outcome, policy, now, host.random)
  const correlationId = reading?.correlationId
  host.sink({
    event: 'attempt.started',
    ...eventFields(taken, kind, correlationId, host),
    waitedMs: waitedMs(taken, now),
  })
  emitEnded(taken, kind, correlationId, ending, verdict, 0, host)
  // A task that never starts any more has an end without a start, as one that is ended while it waits.
  const never = verdict.kind === 'expired' || verdict.kind === 'cancelled'
  const end = toRecord(never ? { ...taken, fencingToken: 0 } : taken, ending, verdict, at, at, slot, host)
  return { record: end, verdict, error: ending.error }
}

/** Milliseconds since 1970. */
function deadlineOf(taken: FetchedTask, reading: DecodedTask): number | 'none' {
  const { totalMs } = reading.timeouts
  return totalMs === 'none' ? 'none' : taken.enqueuedAt + totalMs
}

/** What could not be read has no deadline that anybody knows. */
function retryContext(taken: FetchedTask, reading: DecodedTask | undefined): RetryContext {
  const { attempt, maxAttempts } = taken
  if (reading === undefined)
    return { attempt, maxAttempts, totalTimeoutAt: 'none', neverStarted: false, onInterrupt: 'requeue' }
  const { onInterrupt } = reading.runnable.definition
  return { attempt, maxAttempts, totalTimeoutAt: deadlineOf(taken, reading), neverStarted: false, onInterrupt }
}

function emitEnded(
  taken: FetchedTask,
  kind: TaskKind,
  correlationId: string | undefined,
  ending: OutcomeDetails,
  verdict: Verdict,
  durationMs: number,
  host: RunnerHost,
): void {
  host.sink({
    event: 'attempt.ended',
    queue: host.queue,
    task: taken.task,
    id: taken.id,
    kind,
    fencingToken: taken.fencingToken,
    attempt: taken.attempt,
    correlationId,
    state: ending.state,
    reason: ending.reason,
    code: ending.code,
    error: ending.error,
    durationMs,
    verdict: verdict.kind,
    delayMs: delayOf(verdict),
  })
}

function delayOf(verdict: Verdict): number | undefined {
  if (verdict.kind === 'requeued') return verdict.throttleMs
  return verdict.kind === 'retrying' || verdict.kind === 'snoozed' ? verdict.delayMs : undefined
}

/** Never negative: the clock of the machine that enqueued may be ahead of ours. */
function waitedMs({ readyAt }: FetchedTask, now: number): number | undefined {
  return readyAt === undefined ? undefined : Math.max(0, now - readyAt)
}

function eventFields(taken: FetchedTask, kind: TaskKind, correlationId: string | undefined, host: RunnerHost) {
  const { task, id, fencingToken, attempt } = taken
  return { queue: host.queue, task, id, kind, fencingToken, attempt, correlationId }
}

function toRecord(
  { fencingToken, attempt }: FetchedTask,
  { state, reason, code, message, by }: OutcomeDetails,
  verdict: Verdict,
  beganAt: number,
  endedAt: number,
  slot: Slot,
  { clock, worker }: RunnerHost,
): AttemptRecord {
  const end = {
    fencingToken,
    attempt,
    counted: fencingToken > 0 && countsAsAttempt(verdict),
    state,
    worker,
    slot: slot.number,
    startedAt: Math.round(clock.at(beganAt)),
    endedAt: Math.round(clock.at(endedAt)),
  }
  if (state === 'DONE_SUCCESS') return end
  return {
    ...end,
    ...(reason && { reason }),
    ...(code !== undefined && { code }),
    ...(message !== undefined && { message }),
    ...(by !== undefined && { by }),
  }
}
