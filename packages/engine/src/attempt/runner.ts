// The runner: one attempt as a pipeline of named steps, from a taken task to an ending and a verdict.
import { type AttemptEnd, DEFAULT_RETRY, type RetryPolicy, TaskError, type TaskKind } from '@bullpen/contract'
import type { CloseReason, Worker } from '../pool/slot.ts'
import type { Random, TakenTask } from '../ports/ports.ts'
import { Attempt, type AttemptHost } from './attempt.ts'
import { type Reading, readTask } from './decode.ts'
import { TimedRun, type TimedRunHost } from './interruptible-run.ts'
import { IsolateEnded } from './isolated-handler.ts'
import { declared, type Ending, endingOf, type Outcome, outcomeOfThrow } from './outcome.ts'
import { checkOutput } from './output.ts'
import { type AttemptCount, decide, type Verdict } from './verdict.ts'

/** What a pool gives to every attempt that it runs. */
export interface RunnerHost extends AttemptHost, TimedRunHost {
  readonly random: Random
  /** Why the pool lets nothing start any more; undefined while it does. */
  readonly closedBy: () => CloseReason | undefined
  readonly queue: string
  /** This process, for the record: host and process id. */
  readonly process: string
}

export interface Conclusion {
  readonly end: AttemptEnd
  readonly verdict: Verdict
  /** What was thrown, for logs; its stack is kept with the task. */
  readonly error: unknown
}

/**
 * Runs one attempt to its end; at once when its handler returns at once. Neither throws nor rejects: whatever the handler
 * does becomes an outcome. Emits `attempt.started` and `attempt.ended`, and `attempt.late` when the handler comes back
 * after its attempt has ended.
 *
 * Steps: read → look whether it may start → begin → call (a long handler that waits: timed, interruptible) → check the
 * output → conclude.
 */
export function runAttempt(taken: TakenTask, worker: Worker, host: RunnerHost): Conclusion | Promise<Conclusion> {
  const reading = readTask(taken, host.registry)
  return reading instanceof TaskError
    ? endUnstarted(taken, undefined, declared(reading), worker, host)
    : runReading(taken, reading, worker, host)
}

/** As {@link runAttempt}, of a task that has been read. */
export function runReading(
  taken: TakenTask,
  reading: Reading,
  worker: Worker,
  host: RunnerHost,
): Conclusion | Promise<Conclusion> {
  const beganAt = host.clock.monotonic()
  const tooLate = mayNotStart(taken, reading, beganAt, host)
  if (tooLate !== undefined) return endUnstarted(taken, reading, tooLate, worker, host)
  const attempt = begin(taken, reading, beganAt, host)
  const outcome = call(attempt, worker, host)
  return outcome instanceof Promise
    ? outcome.then((late) => conclude(attempt, late, worker, host))
    : conclude(attempt, outcome, worker, host)
}

/** What stands in the way of a start: a closed pool, a queue timeout or a deadline that has passed. */
function mayNotStart(taken: TakenTask, reading: Reading, at: number, host: RunnerHost): Outcome | undefined {
  const closed = host.closedBy()
  if (closed !== undefined) return { kind: 'closed', reason: closed }
  if (taken.cancelled !== undefined) return { kind: 'stopped', reason: taken.cancelled }
  const { queueMs, deadlineMs } = reading.limits
  if (queueMs === 'none' && deadlineMs === 'none') return undefined
  const now = host.clock.at(at)
  if (queueMs !== 'none' && taken.readyAt !== undefined && now >= taken.readyAt + queueMs) {
    return { kind: 'timed_out', reason: 'queue', limitMs: queueMs }
  }
  if (deadlineMs !== 'none' && now >= taken.enqueuedAt + deadlineMs) {
    return { kind: 'timed_out', reason: 'deadline', limitMs: deadlineMs }
  }
  return undefined
}

function begin(taken: TakenTask, reading: Reading, beganAt: number, host: RunnerHost): Attempt {
  const attempt = new Attempt(taken, reading, beganAt, host)
  attempt.moveTo('IN_PROCESS')
  const { queue, sink, clock } = host
  const { task, id, start, attempt: number } = taken
  sink({
    event: 'attempt.started',
    queue,
    task,
    id,
    kind: reading.runnable.definition.kind,
    start,
    attempt: number,
    correlationId: reading.correlationId,
    waitedMs: waited(taken, clock.at(beganAt)),
  })
  return attempt
}

/** Calls the handler. Neither throws nor rejects; a promise only where the handler gave one. */
function call(attempt: Attempt, worker: Worker, host: RunnerHost): Outcome | Promise<Outcome> {
  const { reading } = attempt
  try {
    const returned = host.context.run(attempt, reading.runnable.handle)
    if (!isThenable(returned)) return checkOutput(returned, reading.runnable.definition, host.outputLimitBytes)
    const outcome = settle(returned, reading, host)
    return reading.runnable.definition.kind === 'short'
      ? // It can't be interrupted: what escaped it is its outcome when it ends, whatever it returned.
        outcome.then((late) => attempt.escapee ?? late)
      : timed(outcome, attempt, worker, host)
  } catch (thrown) {
    return failed(thrown, reading)
  }
}

async function settle(returned: PromiseLike<unknown>, reading: Reading, host: RunnerHost): Promise<Outcome> {
  try {
    return checkOutput(await returned, reading.runnable.definition, host.outputLimitBytes)
  } catch (thrown) {
    return failed(thrown, reading)
  }
}

/** A classifier that itself throws has found nothing: its own error is what an engineer should look at. */
function failed(thrown: unknown, { runnable }: Reading): Outcome {
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

function timed(returned: Promise<Outcome>, attempt: Attempt, worker: Worker, host: RunnerHost): Promise<Outcome> {
  const { taken, reading } = attempt
  const deadlineAt = deadlineOf(taken, reading)
  const { clock } = host
  const run = new TimedRun(
    returned,
    attempt,
    worker,
    reading.limits,
    deadlineAt === 'none' ? 'none' : attempt.beganAt + (deadlineAt - clock.at(attempt.beganAt)),
    host,
  )
  run.onLate = (overrunMs) => {
    const { kind } = reading.runnable.definition
    host.sink({ event: 'attempt.late', ...about(taken, kind, reading.correlationId, host), overrunMs })
  }
  return run.outcome
}

const LOCK_LOST: Outcome = Object.freeze({ kind: 'closed', reason: 'lock_lost' })

function conclude(attempt: Attempt, outcome: Outcome, worker: Worker, host: RunnerHost): Conclusion {
  const { taken, reading, beganAt } = attempt
  const { clock } = host
  const endedAt = clock.monotonic()
  const inTime = attempt.hasLostLock ? LOCK_LOST : withinDeadline(taken, reading, outcome, clock.at(endedAt))
  const ending = endingOf(inTime)
  attempt.moveTo(ending.state)
  const { definition } = reading.runnable
  const verdict = decide(countOf(taken, reading), inTime, definition.retry, clock.at(endedAt), host.random)
  announce(taken, definition.kind, reading.correlationId, ending, verdict, endedAt - beganAt, host)
  return { end: record(taken, ending, beganAt, endedAt, worker, host), verdict, error: ending.error }
}

/** A snooze beyond the end of the task's life is that end. */
function withinDeadline(taken: TakenTask, reading: Reading, outcome: Outcome, now: number): Outcome {
  const deadlineAt = deadlineOf(taken, reading)
  if (outcome.kind !== 'snoozed' || deadlineAt === 'none' || now + outcome.delayMs < deadlineAt) return outcome
  return { kind: 'timed_out', reason: 'deadline', limitMs: deadlineAt - taken.enqueuedAt }
}

/** A task that can't be read, or may not start, reaches no handler; but its attempt begins and ends, and is told. */
function endUnstarted(
  taken: TakenTask,
  reading: Reading | undefined,
  outcome: Outcome,
  worker: Worker,
  host: RunnerHost,
): Conclusion {
  const at = host.clock.monotonic()
  const now = host.clock.at(at)
  const definition = host.registry.get(taken.task)?.definition
  const kind = definition?.kind ?? 'long'
  const policy: RetryPolicy = definition?.retry ?? DEFAULT_RETRY
  const ending = endingOf(outcome)
  // Whatever its definition says: nothing of it has happened.
  const count: AttemptCount = { ...countOf(taken, reading), onInterrupt: 'hand_back' }
  const verdict = decide(count, outcome, policy, now, host.random)
  const correlationId = reading?.correlationId
  host.sink({ event: 'attempt.started', ...about(taken, kind, correlationId, host), waitedMs: waited(taken, now) })
  announce(taken, kind, correlationId, ending, verdict, 0, host)
  // A task that never starts any more has an end without a start, as one that is ended while it waits.
  const never = verdict.kind === 'expired' || verdict.kind === 'cancelled'
  const end = record(never ? { ...taken, start: 0 } : taken, ending, at, at, worker, host)
  return { end, verdict, error: ending.error }
}

/** Milliseconds since 1970. */
function deadlineOf(taken: TakenTask, reading: Reading): number | 'none' {
  const { deadlineMs } = reading.limits
  return deadlineMs === 'none' ? 'none' : taken.enqueuedAt + deadlineMs
}

/** What could not be read has no deadline that anybody knows. */
function countOf(taken: TakenTask, reading: Reading | undefined): AttemptCount {
  const { attempt, maxAttempts } = taken
  if (reading === undefined) return { attempt, maxAttempts, deadlineAt: 'none', onInterrupt: 'hand_back' }
  const { onInterrupt } = reading.runnable.definition
  return { attempt, maxAttempts, deadlineAt: deadlineOf(taken, reading), onInterrupt }
}

function announce(
  taken: TakenTask,
  kind: TaskKind,
  correlationId: string | undefined,
  ending: Ending,
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
    start: taken.start,
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
  if (verdict.kind === 'handed_back') return verdict.holdMs
  return verdict.kind === 'retrying' || verdict.kind === 'snoozed' ? verdict.delayMs : undefined
}

/** Never negative: the clock of the machine that enqueued may be ahead of ours. */
function waited({ readyAt }: TakenTask, now: number): number | undefined {
  return readyAt === undefined ? undefined : Math.max(0, now - readyAt)
}

function about(taken: TakenTask, kind: TaskKind, correlationId: string | undefined, host: RunnerHost) {
  const { task, id, start, attempt } = taken
  return { queue: host.queue, task, id, kind, start, attempt, correlationId }
}

function record(
  { start, attempt }: TakenTask,
  { state, reason, code, message }: Ending,
  beganAt: number,
  endedAt: number,
  worker: Worker,
  { clock, process }: RunnerHost,
): AttemptEnd {
  const end = {
    start,
    attempt,
    state,
    process,
    worker: worker.number,
    beganAt: Math.round(clock.at(beganAt)),
    endedAt: Math.round(clock.at(endedAt)),
  }
  if (state === 'DONE_SUCCESS') return end
  return {
    ...end,
    ...(reason && { reason }),
    ...(code !== undefined && { code }),
    ...(message !== undefined && { message }),
  }
}
