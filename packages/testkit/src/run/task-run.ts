// What is told of the run of one task.
import type {
  AttemptRecord,
  AttemptState,
  OutputOf,
  Progress,
  TaskDefinition,
  TaskEvent,
  TaskId,
  TaskRecord,
  TaskStatus,
} from '@bullpen/contract'
import type { LocalCancel } from '@bullpen/engine/internal'
import { statesOf } from '../attempt-states.ts'
import type { LogLine } from '../recording-log.ts'

export interface TaskRun<D extends TaskDefinition = TaskDefinition> {
  readonly id: TaskId
  /** Of each attempt, one after the other: `['NEW', 'IN_PROCESS', 'DONE_SUCCESS']`. */
  readonly states: readonly AttemptState[]
  readonly status: TaskStatus
  /** As a caller gets it: through JSON. Undefined unless the task is completed. */
  readonly output: OutputOf<D> | undefined
  /** The recorded ends, oldest first; the ten newest at most. */
  readonly attempts: readonly AttemptRecord[]
  /** What the handler threw or the runner made of it, one for each attempt that failed with one. */
  readonly errors: readonly unknown[]
  readonly logs: readonly LogLine[]
  readonly progress: readonly Progress[]
  /** What it enqueued, as it is stored; none of it is run. */
  readonly children: readonly TaskRecord[]
  /** Starts whose handlers came back after their attempt had ended, and how much later, in ms. */
  readonly late: readonly { readonly start: number; readonly overrunMs: number }[]
  /** What came of `cancelAt`. */
  readonly cancel: LocalCancel | undefined
  readonly fencingToken: number
  readonly attemptsMade: number
  /** From the enqueueing to the end of the run, in ms of its clock. */
  readonly elapsedMs: number
  /** The task as the API would show it. */
  readonly record: TaskRecord
  readonly events: readonly TaskEvent[]
}

/** What only the run itself knows; the rest follows from it. */
export interface Witnessed {
  readonly record: TaskRecord
  readonly events: readonly TaskEvent[]
  /** Starts that reached their handler. */
  readonly handled: ReadonlySet<number>
  readonly logs: readonly LogLine[]
  readonly progress: readonly Progress[]
  readonly children: readonly TaskRecord[]
  readonly cancel: LocalCancel | undefined
  readonly elapsedMs: number
}

export function taskRun<D extends TaskDefinition>({ handled, ...witnessed }: Witnessed): TaskRun<D> {
  const { record, events } = witnessed
  const { id, status, output, attempts: history, fencingToken, attemptsMade: attempts } = record
  return {
    ...witnessed,
    id,
    status,
    // What the definition's own schema made, through JSON: as any caller of the task gets it.
    output: output as OutputOf<D> | undefined,
    attempts: history,
    fencingToken: fencingToken,
    attemptsMade: attempts,
    states: statesOf(events, handled),
    errors: events.flatMap((event) =>
      event.event === 'attempt.ended' && event.error !== undefined ? [event.error] : [],
    ),
    late: events.flatMap((event) =>
      event.event === 'attempt.late' ? [{ start: event.fencingToken, overrunMs: event.overrunMs }] : [],
    ),
  }
}
