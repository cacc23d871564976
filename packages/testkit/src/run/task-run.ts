// The result of a run: what happened to the task, and what its handler did.
import {
  ATTEMPT_STATE_LABELS,
  type AttemptRecord,
  type AttemptState,
  type OutputOf,
  type Progress,
  type TaskDefinition,
  type TaskEvent,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import type { LocalCancel } from '@bullpen/engine/internal'
import { statesOf } from '../attempt-states.ts'
import type { LogLine } from '../recording-log.ts'

export interface TaskRun<D extends TaskDefinition = TaskDefinition> {
  readonly id: TaskId
  readonly status: TaskStatus
  /**
   * One line that explains how the task ended and why, for use as an assertion's message: `assert.equal(run.status, 'completed',
   * run.summary)`.
   */
  readonly summary: string
  /** The states of all attempts in order: `['NEW', 'IN_PROCESS', 'DONE_SUCCESS']`. */
  readonly states: readonly AttemptState[]
  /** The output as a caller receives it, after a round trip through JSON. Undefined unless the task is completed. */
  readonly output: OutputOf<D> | undefined
  /** The last ten attempt records, oldest first. Times are in milliseconds since 1970. */
  readonly attempts: readonly AttemptRecord[]
  /** The errors of failed attempts. Each is the value that the handler threw, or the error that the runner created from it. */
  readonly errors: readonly unknown[]
  readonly logs: readonly LogLine[]
  readonly progress: readonly Progress[]
  /** The tasks that the handler enqueued. They are stored but not run. */
  readonly children: readonly TaskRecord[]
  /**
   * The follow-ups that the end of the task enqueues: those of the definition, and those that the handler has added with
   * `ctx.onSuccess` or registered with `ctx.onFailure` and `ctx.onEnd`. They are not run.
   */
  readonly followUps: readonly { readonly task: string; readonly input: unknown }[]
  /** The compensations that follow the end of the task, in the order in which they would run. They are not run. */
  readonly compensations: readonly { readonly task: string; readonly key: string; readonly input: unknown }[]
  /** The handlers that returned after their attempt had ended, and how much later, in ms. */
  readonly late: readonly { readonly fencingToken: number; readonly overrunMs: number }[]
  /** The pool's response to `cancelAt`. */
  readonly cancel: LocalCancel | undefined
  /** How many attempts were started, counted or not. */
  readonly fencingToken: number
  /** How many attempts count against the retry policy. */
  readonly attemptsMade: number
  /** The time from the enqueue to the end of the run, in ms on the run's clock. */
  readonly elapsedMs: number
  /** The stored task. */
  readonly record: TaskRecord
  readonly events: readonly TaskEvent[]
  /** Returns the output. @throws Error if the task is not completed, with the summary as message and the last error as cause. */
  result(): OutputOf<D>
}

/** The events and results that the run has recorded. The rest of the result is derived from them. */
export interface RecordedRun {
  readonly record: TaskRecord
  readonly events: readonly TaskEvent[]
  /** The fencing tokens of the attempts that reached the handler. */
  readonly handled: ReadonlySet<number>
  readonly logs: readonly LogLine[]
  readonly progress: readonly Progress[]
  readonly children: readonly TaskRecord[]
  readonly compensations: TaskRun['compensations']
  readonly followUps: TaskRun['followUps']
  readonly cancel: LocalCancel | undefined
  readonly elapsedMs: number
}

export function taskRun<D extends TaskDefinition>({ handled, ...recorded }: RecordedRun): TaskRun<D> {
  const { record, events } = recorded
  const { id, status, attempts, fencingToken, attemptsMade } = record
  // The definition's own schema has parsed the output, and it has been through JSON, just as a caller receives it.
  const output = record.output as OutputOf<D> | undefined
  const errors = events.flatMap((event) =>
    (event.event === 'attempt.ended' || event.event === 'attempt.commit_refused') && event.error !== undefined
      ? [event.error]
      : [],
  )
  const summary = summaryOf(record)
  return {
    ...recorded,
    id,
    status,
    summary,
    output,
    attempts,
    errors,
    fencingToken,
    attemptsMade,
    states: statesOf(events, handled),
    late: events.flatMap((event) =>
      event.event === 'attempt.late' ? [{ fencingToken: event.fencingToken, overrunMs: event.overrunMs }] : [],
    ),
    result() {
      if (status !== 'completed') throw new Error(summary, { cause: errors.at(-1) })
      return output as OutputOf<D>
    },
  }
}

/** Returns a line such as `dead after 2 of 2 attempts; the last one failed: busy: not now`. */
function summaryOf({ status, attemptsMade, maxAttempts, attempts }: TaskRecord): string {
  const last = attempts.at(-1)
  const after = `${status} after ${attemptsMade} of ${maxAttempts} attempts`
  if (status === 'completed' || last === undefined) return after
  const why = [last.code ?? last.reason, last.message].filter((part) => part !== undefined).join(': ')
  return `${after}; the last one ${ATTEMPT_STATE_LABELS[last.state]}${why === '' ? '' : `: ${why}`}`
}
