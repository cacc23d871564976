// The runner: one attempt as a pipeline of named steps, from a taken task to an ending and a verdict.
import { type AttemptEnd, DEFAULT_RETRY, type RetryPolicy, TaskError, type TaskKind } from '@bullpen/contract'
import { Attempt, type AttemptHost } from './attempt.ts'
import type { AsyncContext } from './escapes.ts'
import { type Interruption, runTimed } from './interruption.ts'
import { IsolateEnded } from './isolated-handler.ts'
import { type AttemptLimits, type Limits, limitsOf } from './limits.ts'
import { declared, type Ending, endingOf, type Outcome, outcomeOfThrow } from './outcome.ts'
import { checkOutput } from './output.ts'
import type { Clock, EventSink, Random, TakenTask } from './ports.ts'
import { type Reading, readTask } from './reading.ts'
import type { Registry } from './registry.ts'
import { type AttemptCount, decide, type Verdict } from './verdict.ts'

/** Of a short task: it is not timed. */
const NO_LIMITS: AttemptLimits = { timeoutMs: 'none', heartbeatMs: 'none', deadlineAt: 'none', graceMs: 'none' }

/** What a pool gives to every attempt that it runs. */
export interface RunnerHost extends AttemptHost {
  readonly registry: Registry
  readonly context: AsyncContext
  readonly clock: Clock
  readonly random: Random
  readonly sink: EventSink
  readonly queue: string
  /** The pool's default limits for long tasks. */
  readonly limits: Limits
  /** The most bytes that an output may take as JSON. */
  readonly outputLimitBytes: number
  /** This process, for the record: host and process id. */
  readonly process: string
  /** The long attempts that are running, so that a drain can close them. */
  readonly interruptible: Set<Interruption>
}

export interface Conclusion {
  readonly end: AttemptEnd
  readonly verdict: Verdict
  /** What was thrown, for logs; its stack is kept with the task. */
  readonly error: unknown
}

/**
 * Runs one attempt to its end; at once when a short handler returns at once. Neither throws nor rejects: whatever the handler does becomes an outcome. Emits `attempt.started` and
 * `attempt.ended`, and `attempt.late` when the handler comes back after its attempt has ended.
 *
 * Steps: read → limits → begin → call (short: as it is; long: timed, interruptible) → check the output → conclude.
 */
export function runAttempt(taken: TakenTask, host: RunnerHost): Conclusion | Promise<Conclusion> {
  const reading = readTask(taken, host.registry)
  if (reading instanceof TaskError) return endUnstarted(taken, undefined, declared(reading), host)
  const { definition } = reading.runnable
  const limits =
    definition.kind === 'short' ? NO_LIMITS : limitsOf(definition, host.limits, reading.callLimits, taken.enqueuedAt)
  if (limits.deadlineAt !== 'none' && host.clock.now() >= limits.deadlineAt) {
    const limitMs = limits.deadlineAt - taken.enqueuedAt
    return endUnstarted(taken, reading, { kind: 'timed_out', reason: 'deadline', limitMs }, host)
  }
  const run = begin(taken, reading, limits, host)
  const outcome = run.kind === 'short' ? callShort(run) : callTimed(run)
  return outcome instanceof Promise ? outcome.then((late) => conclude(run, late)) : conclude(run, outcome)
}

/** An attempt that has begun, with what the later steps need. */
interface Run {
  readonly kind: TaskKind
  readonly taken: TakenTask
  readonly reading: Reading
  readonly attempt: Attempt
  readonly limits: AttemptLimits
  readonly host: RunnerHost
  readonly beganAt: number
  readonly beganMonotonic: number
}

function begin(taken: TakenTask, reading: Reading, limits: AttemptLimits, host: RunnerHost): Run {
  const beganAt = host.clock.now()
  const attempt = new Attempt(taken, reading, beganAt, host)
  const { kind } = reading.runnable.definition
  attempt.moveTo('IN_PROCESS')
  host.sink({
    event: 'attempt.started',
    queue: host.queue,
    task: taken.task,
    id: taken.id,
    kind,
    start: taken.start,
    attempt: taken.attempt,
    correlationId: reading.correlationId,
    waitedMs: waited(taken, beganAt),
  })
  return { kind, taken, reading, attempt, limits, host, beganAt, beganMonotonic: host.clock.monotonic() }
}

/** A short task can't be interrupted: what escaped it is its outcome when it ends, whatever it returned. */
function callShort(run: Run): Outcome | Promise<Outcome> {
  const outcome = call(run)
  return outcome instanceof Promise
    ? outcome.then((late) => run.attempt.escapee ?? late)
    : (run.attempt.escapee ?? outcome)
}

/** Calls the handler and checks what it returns. Neither throws nor rejects; a promise only where the handler gave one. */
function call({ reading, attempt, host }: Run): Outcome | Promise<Outcome> {
  try {
    const returned = host.context.run(attempt, reading.runnable.handle)
    return isThenable(returned)
      ? settle(returned, reading, host)
      : checkOutput(returned, reading.runnable.definition, host.outputLimitBytes)
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

function callTimed(run: Run): Promise<Outcome> {
  const { host, attempt, reading } = run
  return runTimed({
    call: async (beat, escaping) => {
      attempt.onBeat(beat)
      attempt.onEscape(escaping)
      return call(run)
    },
    limits: run.limits,
    clock: host.clock,
    interruptible: host.interruptible,
    // In the attempt's own context: what a listener throws is charged to this attempt and not to the process.
    signal: (reason) => host.context.run(attempt, () => attempt.abort(reason)),
    kill: () => attempt.kill(),
    late: (overrunMs) =>
      host.sink({ event: 'attempt.late', ...about(run.taken, run.kind, reading.correlationId, host), overrunMs }),
  })
}

function conclude(run: Run, outcome: Outcome): Conclusion {
  const { kind, taken, reading, attempt, limits, host, beganAt, beganMonotonic } = run
  const ending = endingOf(outcome)
  attempt.moveTo(ending.state)
  const verdict = decide(
    countOf(taken, limits),
    outcome,
    reading.runnable.definition.retry,
    host.clock.now(),
    host.random,
  )
  const durationMs = host.clock.monotonic() - beganMonotonic
  announce(taken, kind, reading.correlationId, ending, verdict, durationMs, host)
  return { end: record(taken, ending, beganAt, beganAt + Math.round(durationMs), host), verdict, error: ending.error }
}

/** A task that can't be read, or whose life is over, reaches no handler; but its attempt begins and ends, and is told. */
function endUnstarted(taken: TakenTask, reading: Reading | undefined, outcome: Outcome, host: RunnerHost): Conclusion {
  const now = host.clock.now()
  const definition = host.registry.get(taken.task)?.definition
  const kind = definition?.kind ?? 'long'
  const policy: RetryPolicy = definition?.retry ?? DEFAULT_RETRY
  const ending = endingOf(outcome)
  // What could not be read has no deadline that anybody knows; what is past its own is dead.
  const count = countOf(taken, { deadlineAt: outcome.kind === 'timed_out' ? now : 'none' })
  const verdict = decide(count, outcome, policy, now, host.random)
  const correlationId = reading?.correlationId
  host.sink({ event: 'attempt.started', ...about(taken, kind, correlationId, host), waitedMs: waited(taken, now) })
  announce(taken, kind, correlationId, ending, verdict, 0, host)
  return { end: record(taken, ending, now, now, host), verdict, error: ending.error }
}

function countOf({ attempt, maxAttempts }: TakenTask, { deadlineAt }: Pick<AttemptLimits, 'deadlineAt'>): AttemptCount {
  return { attempt, maxAttempts, deadlineAt }
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
    delayMs: verdict.kind === 'retrying' ? verdict.delayMs : undefined,
  })
}

/** Never negative: the clock of the machine that enqueued may be ahead of ours. */
function waited({ readyAt }: TakenTask, now: number): number | undefined {
  return readyAt === undefined ? undefined : Math.max(0, now - readyAt)
}

function about(taken: TakenTask, kind: TaskKind, correlationId: string | undefined, host: RunnerHost) {
  const { task, id, start, attempt } = taken
  return { queue: host.queue, task, id, kind, start, attempt, correlationId }
}

function record(taken: TakenTask, ending: Ending, beganAt: number, endedAt: number, host: RunnerHost): AttemptEnd {
  const { state, reason, code, message } = ending
  const end = { start: taken.start, attempt: taken.attempt, state, process: host.process, beganAt, endedAt }
  if (state === 'DONE_SUCCESS') return end
  return {
    ...end,
    ...(reason && { reason }),
    ...(code !== undefined && { code }),
    ...(message !== undefined && { message }),
  }
}
