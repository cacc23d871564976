// Defines the port for traces.
import type { TaskId, TraceContext } from '@bullpen/contract'
import type { EventSink } from './event-sink.ts'

/** An attempt whose handler is about to start. */
export interface TracedAttempt {
  readonly queue: string
  readonly task: string
  readonly id: TaskId
  readonly fencingToken: number
  readonly attempt: number
  /** The trace that the task belongs to. */
  readonly traceContext: TraceContext | undefined
}

export interface AttemptSpan {
  /** What the attempt passes on to its handler, its child tasks and its follow-ups in place of the task's own. */
  readonly traceContext: TraceContext | undefined
  /** Calls a function within the span, and returns what it returns. */
  run<T>(call: () => T): T
}

/** The functions must not throw or block. */
export interface Tracing {
  /** Starts the span of an attempt. */
  startAttempt(attempt: TracedAttempt): AttemptSpan
  /** Receives every event. The span of an attempt ends with `attempt.ended` or `attempt.commit_refused`. */
  readonly sink: EventSink
  /** Returns the trace that the calling code belongs to, or undefined if it belongs to none. */
  current(): TraceContext | undefined
}
