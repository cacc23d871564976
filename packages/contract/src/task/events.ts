// The events that telemetry receives about tasks, attempts, slots and pools.
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

/** What happens to the task after an attempt has ended. */
export type VerdictKind =
  | FinalStatus
  | 'retrying'
  /** The task returns to the head of its queue, and the attempt does not count. */
  | 'requeued'
  /** The task is scheduled again because the handler asked for it, and the attempt does not count. */
  | 'snoozed'
  /** Another worker owns the task and decides what happens to it. */
  | 'lost'

/** A closed union, so receivers can switch over `event` exhaustively. Durations are in milliseconds. */
export type TaskEvent =
  | (TaskFields & { readonly event: 'task.enqueued' })
  | (AttemptFields & {
      readonly event: 'attempt.started'
      /** The time from when the task was ready until the attempt started. Known only for the first attempt. */
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
      /** The time until the next attempt, if the task is retried or snoozed, or is requeued while its queue is throttled. */
      readonly delayMs: number | undefined
    })
  /** The handler returned after its attempt had ended, so its result was discarded. */
  | (AttemptFields & { readonly event: 'attempt.late'; readonly overrunMs: number })
  /** A thread or child process ended for a reason other than being idle, and is replaced. */
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
  /** A pool starts fetching again after fetching had failed. Its slots were in RECOVER_ERR for `afterMs`. */
  | { readonly event: 'slots.restarted'; readonly queue: string; readonly slots: number; readonly afterMs: number }
  /** An event-loop stall that was reported is over. The other fields identify the attempt that caused it, if known. */
  | {
      readonly event: 'event_loop.stalled'
      readonly task: string | undefined
      readonly id: string | undefined
      readonly fencingToken: number | undefined
      readonly attempt: number | undefined
      /** The function, file and line that stalled the event loop. */
      readonly location: string | undefined
      readonly stalledMs: number
    }
  | { readonly event: 'pool.state'; readonly queue: string; readonly from: PoolState; readonly to: PoolState }
