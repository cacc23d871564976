// Runs one attempt, from a fetched task to a verdict and an attempt record.
//
//   decode → check whether it may start → begin → call the handler → check its output → make its follow-ups → finish
//
// `runAttempt` does not wait for the handler. If the handler has returned synchronously, `runAttempt` returns the result. If the
// handler is waiting, `runAttempt` returns a promise of the result for a short task, or an interruptible run for a long task.
// If nothing interrupts that run, `finish` receives the handler's own outcome. Once the run is interrupted, the interruption is
// the outcome, whatever error the handler throws afterwards.
//
// `runAttempt` never throws or rejects, because everything that a handler can do becomes an outcome. A thrown `TaskError`, or an
// error that a classifier recognises, becomes `declared`. An error that stands for another outcome, such as that of `ctx.snooze`
// or `rateLimited`, becomes that outcome. Any other error becomes `panicked`, which is retried like a retryable failure.
//
// `runAttempt` emits `attempt.started` for every attempt, and `attempt.late` if a handler returns after its attempt has ended.
// The result contains the event to emit once the store has responded to the commit.
import { DEFAULT_RETRY, type RunId, TaskError, type TaskKind } from '@bullpen/contract'
import { startedEvent } from '../events/event-bodies.ts'
import type { AttemptResult, CloseReason, Outcome } from '../ports/attempt-result.ts'
import type { FetchedTask } from '../ports/consumer.ts'
import type { Tracing } from '../ports/tracing.ts'
import { declaredFailure, describeOutcome, outcomeOfError } from '../verdict/outcome.ts'
import { errorOf, readable } from '../verdict/thrown.ts'
import { decide } from '../verdict/verdict.ts'
import { Attempt, type AttemptHost } from './attempt.ts'
import { type DecodedTask, decodeTask, type RunnableTask } from './decode.ts'
import { endEvent, finish, toRecord } from './finish.ts'
import { InterruptibleRun, type InterruptibleRunHost } from './interruptible-run.ts'
import { IsolateEnded } from './isolated-handler.ts'
import { checkOutput } from './output.ts'
import type { Registry } from './registry.ts'
import { timeoutBeforeStart } from './timeouts.ts'

/** What the runner needs from its pool or processor. */
export interface RunnerHost extends AttemptHost, InterruptibleRunHost {
  readonly registry: Registry
  readonly tracing?: Tracing | undefined
}

export type RunningAttempt = AttemptResult | Promise<AttemptResult> | InterruptibleRun

/**
 * Runs one attempt of a fetched task. If the attempt's context was closed before the handler could start, `closedBy` is the
 * reason.
 */
export function runAttempt(task: FetchedTask, host: RunnerHost, closedBy?: CloseReason): RunningAttempt {
  const decoded = decodeTask(task, host.registry)
  if (!(decoded instanceof TaskError)) return runDecoded(task, decoded, host, closedBy)
  const { code, retryable } = decoded
  const outcome: Outcome = retryable ? { kind: 'unsupported', code, error: decoded } : declaredFailure(decoded)
  return endBeforeStart(task, undefined, outcome, host)
}

/** Works like {@link runAttempt}, but for a task that is already decoded. */
export function runDecoded(
  task: FetchedTask,
  decoded: RunnableTask,
  host: RunnerHost,
  closedBy?: CloseReason,
): RunningAttempt {
  const startedAt = host.clock.monotonic()
  const blocked = whyNotStart(task, decoded, startedAt, host, closedBy)
  if (blocked !== undefined) return endBeforeStart(task, decoded, blocked, host)
  return call(begin(task, decoded, startedAt, host), decoded, host)
}

function whyNotStart(
  task: FetchedTask,
  { timeouts, totalTimeoutAt }: DecodedTask,
  at: number,
  { clock }: RunnerHost,
  closedBy: CloseReason | undefined,
): Outcome | undefined {
  if (closedBy !== undefined) return { kind: 'closed', reason: closedBy }
  if (task.cancelled !== undefined) return { kind: 'stopped', ...task.cancelled }
  if (task.apart === 'poison') return poisonOutcome(task)
  if (timeouts.queueMs === 'none' && totalTimeoutAt === 'none') return undefined
  const passed = timeoutBeforeStart({ timeouts, totalTimeoutAt, readyAt: task.readyAt }, clock.at(at))
  return passed && { kind: 'timed_out', ...passed }
}

function poisonOutcome({ quarantine }: FetchedTask): Outcome {
  const deaths = quarantine?.deaths ?? 0
  const message = `the task's process has died ${deaths === 1 ? 'once' : `${deaths} times`}, so the task is not started again`
  return { kind: 'panicked', reason: 'poison', error: new Error(message) }
}

function begin(task: FetchedTask, decoded: DecodedTask, startedAt: number, host: RunnerHost): Attempt {
  const attempt = new Attempt(task, decoded, startedAt, host)
  attempt.moveTo('IN_PROCESS')
  emitStarted(task, decoded.definition.kind, decoded.correlationId, host.clock.at(startedAt), host)
  if (task.events !== undefined) task.events.report(startedEvent(task.events.about, host.worker))
  return attempt
}

function call(attempt: Attempt, { handle }: RunnableTask, host: RunnerHost): RunningAttempt {
  const { decoded } = attempt
  const { definition } = decoded
  let outcome: Outcome | Promise<Outcome>
  try {
    const { tracing } = host
    const returned =
      tracing === undefined ? host.context.run(attempt, handle) : runTraced(attempt, handle, tracing, host)
    outcome = isThenable(returned) ? settle(returned, attempt, host) : outcomeOfReturn(returned, attempt, host)
  } catch (thrown) {
    outcome = outcomeOf(thrown, decoded)
  }
  if (!(outcome instanceof Promise)) return finish(attempt, attempt.uncaught ?? outcome, host)
  if (definition.kind === 'short') {
    // A short attempt cannot be interrupted, so an uncaught error becomes its outcome only after the handler has ended.
    return outcome.then((own) => finish(attempt, attempt.uncaught ?? own, host))
  }
  return new InterruptibleRun(attempt, outcome, host, (overrunMs) => emitLate(attempt, overrunMs, host))
}

/** Calls the handler within a span. */
function runTraced(
  attempt: Attempt,
  handle: RunnableTask['handle'],
  tracing: Tracing,
  { context, queue }: RunnerHost,
): unknown {
  const { name: task, id, fencingToken, attempt: number, decoded } = attempt
  const { correlationId, traceContext, followUpOf } = decoded
  const [group, run] = [decoded.group?.id, decoded.run?.id as RunId | undefined]
  const traced = { queue, task, id, fencingToken, attempt: number, correlationId, group, run, followUpOf, traceContext }
  const span = tracing.startAttempt(traced)
  attempt.span = span
  // The attempt enters its own async context first, because that leaves the one in which the span would be active.
  return context.run(attempt, (each) => span.run(() => handle(each)))
}

async function settle(returned: PromiseLike<unknown>, attempt: Attempt, host: RunnerHost): Promise<Outcome> {
  try {
    return outcomeOfReturn(await returned, attempt, host)
  } catch (thrown) {
    return outcomeOf(thrown, attempt.decoded)
  }
}

/** Returns the outcome for what the handler returned: checks it, and makes the follow-ups of the definition. */
function outcomeOfReturn(returned: unknown, attempt: Attempt, { maxOutputBytes }: RunnerHost): Outcome {
  const { definition } = attempt.decoded
  const outcome = checkOutput(returned, definition, maxOutputBytes)
  // Most definitions have no follow-ups. A late output has no effect.
  if (definition.followUps === undefined || outcome.kind !== 'returned' || attempt.state !== 'IN_PROCESS')
    return outcome
  try {
    attempt.addDefinedFollowUps(outcome.output)
    return outcome
  } catch (cause) {
    return { kind: 'panicked', reason: 'invalid_follow_up', error: errorOf(cause) }
  }
}

/**
 * Returns the outcome for an error that the handler threw. If the definition's classifier itself throws, the classifier's error
 * is reported instead, because it is a bug that must be fixed.
 */
function outcomeOf(value: unknown, { definition }: DecodedTask): Outcome {
  const thrown = readable(value)
  return thrown instanceof IsolateEnded ? thrown.outcome : outcomeOfError(thrown, definition)
}

/**
 * Returns whether a value must be awaited. An `instanceof Promise` check is not enough, because query builders and promises from
 * other realms must be awaited too.
 */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Ends an attempt without starting its handler, because the task cannot be decoded or must not start. */
function endBeforeStart(
  task: FetchedTask,
  decoded: DecodedTask | undefined,
  outcome: Outcome,
  host: RunnerHost,
): AttemptResult {
  const at = host.clock.monotonic()
  const now = host.clock.at(at)
  const definition = host.registry.get(task.task)?.definition
  const kind = definition?.kind ?? 'long'
  const details = describeOutcome(outcome)
  const { attempt, maxAttempts, fencingToken } = task
  const context = {
    attempt,
    maxAttempts,
    uncounted: fencingToken - attempt,
    // The total timeout is unknown if the task cannot be decoded.
    totalTimeoutAt: decoded?.totalTimeoutAt ?? 'none',
    neverStarted: fencingToken === 1,
    // The handler has not started, so the definition's setting does not matter.
    onInterrupt: 'requeue',
  } as const
  const policy = decoded?.retry ?? definition?.retry ?? DEFAULT_RETRY
  const verdict = decide(context, outcome, policy, now, host.random)
  // If the task is cancelled, expires or is poison, the record does not describe the end of any attempt, and the task's wait has not ended
  // with a start.
  const hasNoAttempt = verdict.kind === 'expired' || verdict.kind === 'cancelled' || details.reason === 'poison'
  const ended = hasNoAttempt ? { ...task, fencingToken: 0 } : task
  emitStarted(hasNoAttempt ? { ...task, readyAt: undefined } : task, kind, decoded?.correlationId, now, host)
  return {
    event: endEvent(task, kind, decoded?.correlationId, details, verdict, 0, now, host),
    record: toRecord(ended, details, verdict, at, at, host),
    verdict,
    error: details.error,
    budget: definition?.retry.budget,
    totalTimeoutAt: context.totalTimeoutAt,
  }
}

function emitStarted(
  task: FetchedTask,
  kind: TaskKind,
  correlationId: string | undefined,
  now: number,
  { sink, queue }: RunnerHost,
): void {
  sink({
    event: 'attempt.started',
    queue,
    task: task.task,
    id: task.id,
    kind,
    fencingToken: task.fencingToken,
    attempt: task.attempt,
    correlationId,
    // The clock of the machine that enqueued the task may be ahead of this one, which would give a negative time.
    waitedMs: task.readyAt === undefined ? undefined : Math.max(0, now - task.readyAt),
  })
}

function emitLate({ fetched: task, decoded }: Attempt, overrunMs: number, { sink, queue }: RunnerHost): void {
  sink({
    event: 'attempt.late',
    queue,
    task: task.task,
    id: task.id,
    kind: decoded.definition.kind,
    fencingToken: task.fencingToken,
    attempt: task.attempt,
    correlationId: decoded.correlationId,
    overrunMs,
  })
}
