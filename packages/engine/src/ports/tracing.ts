// Defines the port for traces.
import type { EnqueueAction, GroupId, RunId, TaskId, TraceContext } from '@bullpen/contract'
import type { EventSink } from './event-sink.ts'

/** A part of a trace. What it encloses belongs to it. */
interface Span {
  /** What is passed on in place of the trace context from which the span was started. */
  readonly traceContext: TraceContext | undefined
  /** Calls a function within the span, and returns what it returns. */
  run<T>(call: () => T): T
}

/** An attempt whose handler is about to start. */
export interface TracedAttempt {
  readonly queue: string
  readonly task: string
  readonly id: TaskId
  readonly fencingToken: number
  readonly attempt: number
  readonly correlationId: string | undefined
  /** The group whose member the task is. */
  readonly group: GroupId | undefined
  /** The pipeline run to which the task belongs. */
  readonly run: RunId | undefined
  /** The task or group because of whose end this task was enqueued. */
  readonly followUpOf: string | undefined
  /** The trace that the task belongs to. */
  readonly traceContext: TraceContext | undefined
}

/** Its handler, its child tasks and its follow-ups belong to the span. */
export interface AttemptSpan extends Span {}

/** Tasks that one call is about to store. They all belong to the trace of the calling code. */
export interface TracedEnqueue {
  /** Undefined if the tasks belong to several queues. */
  readonly queue: string | undefined
  /** The name of the tasks' definition. Undefined if they have several. */
  readonly task: string | undefined
  /** Undefined if the call stores several tasks, or if the store derives the id. */
  readonly id: TaskId | undefined
  /** How many tasks a bulk call stores. Undefined if the call stores a single task. */
  readonly count: number | undefined
  readonly correlationId: string | undefined
  /** The group whose members the tasks become. */
  readonly group: GroupId | undefined
  /** The pipeline run that the call starts. */
  readonly run: RunId | undefined
  /** The dead task of which the task is a copy. The task belongs to the trace of that task. */
  readonly retryOf: TaskId | undefined
  readonly traceContext: TraceContext | undefined
}

/** How a call that enqueues tasks has ended. */
export type EnqueueEnd =
  /** The store has replied. The id and the action are those of a single task. */
  | { readonly id?: TaskId; readonly action?: EnqueueAction }
  /** The call has failed, or a bulk call has stored all but `failed` tasks. */
  | { readonly error: unknown; readonly failed?: number }

/** The stored tasks and their follow-ups belong to the span. */
export interface EnqueueSpan extends Span {
  end(end: EnqueueEnd): void
}

/** The functions must not throw or block. */
export interface Tracing {
  /** Starts the span of an attempt. */
  startAttempt(attempt: TracedAttempt): AttemptSpan
  /** Starts the span of a call that stores tasks. */
  startEnqueue(enqueue: TracedEnqueue): EnqueueSpan
  /** Receives every event. The span of an attempt ends with `attempt.ended` or `attempt.commit_refused`. */
  readonly sink: EventSink
  /** Returns the trace that the calling code belongs to, or undefined if it belongs to none. */
  current(): TraceContext | undefined
}

/** What a process needs that enqueues tasks. Without `startEnqueue`, tasks belong to the current trace, and calls have no spans. */
export type ProducerTracing = Pick<Tracing, 'current'> & Partial<Pick<Tracing, 'startEnqueue'>>
