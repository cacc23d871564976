// The events of tasks, attempts, slots and pools that telemetry receives.
import type { AttemptEndState, EndReason, FinalStatus, Isolation, PoolState, TaskKind } from './states.ts'

interface TaskFields {
  readonly queue: string
  readonly task: string
  readonly id: string
}

interface AttemptFields extends TaskFields {
  readonly kind: TaskKind
  readonly fencingToken: number
  readonly attempt: number
  readonly correlationId: string | undefined
}

/** What follows for the task when an attempt has ended. */
export type VerdictKind =
  | FinalStatus
  | 'retrying'
  /** Back to the head of its queue; the attempt does not count. */
  | 'requeued'
  /** Scheduled again, as the handler asked; the attempt does not count. */
  | 'snoozed'
  /** Another worker owns the task and decides. */
  | 'lost'

/** A closed union: receivers switch over `event` exhaustively. Durations are in milliseconds. */
export type TaskEvent =
  | (TaskFields & { readonly event: 'task.enqueued' })
  | (AttemptFields & {
      readonly event: 'attempt.started'
      /** From when the task was ready until the attempt started; known for the first attempt only. */
      readonly waitedMs: number | undefined
    })
  | (AttemptFields & {
      readonly event: 'attempt.ended'
      readonly state: AttemptEndState
      readonly reason: EndReason | undefined
      readonly code: string | undefined
      readonly error: unknown
      readonly durationMs: number
      readonly verdict: VerdictKind
      /** Until the next attempt: of `retrying` and `snoozed` tasks, and of tasks that are requeued while their queue is throttled. */
      readonly delayMs: number | undefined
    })
  /** The handler returned after its attempt had ended; its result was dropped. */
  | (AttemptFields & { readonly event: 'attempt.late'; readonly overrunMs: number })
  /** A thread or child process ended, other than by being idle, and is replaced. */
  | {
      readonly event: 'isolate.replaced'
      readonly isolation: Exclude<Isolation, 'inline'>
      readonly isolate: string
      readonly cause: string
    }
  /** A task was cancelled before it started. */
  | (TaskFields & { readonly event: 'task.cancelled' })
  /** A task passed its queue timeout before a worker fetched it. */
  | (TaskFields & { readonly event: 'task.expired' })
  /** A pool's fetching failed and begins again; its slots were in RECOVER_ERR for `afterMs`. */
  | { readonly event: 'slots.restarted'; readonly queue: string; readonly slots: number; readonly afterMs: number }
  /** An event-loop stall that was reported is over. The other fields name the attempt that caused it, if known. */
  | {
      readonly event: 'event_loop.stalled'
      readonly task: string | undefined
      readonly id: string | undefined
      readonly fencingToken: number | undefined
      readonly attempt: number | undefined
      /** Function, file and line. */
      readonly location: string | undefined
      readonly stalledMs: number
    }
  | { readonly event: 'pool.state'; readonly queue: string; readonly from: PoolState; readonly to: PoolState }
