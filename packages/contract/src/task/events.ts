// Defines the events that telemetry receives about tasks, attempts, slots and pools.
import type { QueueLimitName } from '../definition/limits/queue-limits.ts'
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

/** The limit that refused a task: one of its queue, or the rate at which its API key may enqueue tasks. */
export type RefusedBy = QueueLimitName | 'enqueueRate'

/** Why the result of an attempt was not committed. */
export const COMMIT_REFUSALS = [
  /** The attempt's lock had expired, or the worker noticed before the commit that another worker may take the task. */
  'lock_lost',
  /** Another attempt holds the task's lock. */
  'lock_taken',
  /** The task no longer exists. */
  'task_removed',
  /** The task is no longer active. */
  'not_active',
  /** The job has children that have not finished or have failed. Only jobs of BullMQ's flows have children. */
  'has_children',
  /** BullMQ's Worker committed something else, for example because a function around the processor threw an error. */
  'overridden',
  /** Redis responded to the commit with an error. */
  'store_error',
] as const

export type CommitRefusal = (typeof COMMIT_REFUSALS)[number]

interface AttemptEndFields {
  readonly state: AttemptEndState
  readonly reason: EndReason | undefined
  readonly code: string | undefined
  readonly error: unknown
  readonly durationMs: number
}

/**
 * An event about a task, an attempt, a slot or a pool. The union is closed, so receivers can switch over `event` exhaustively.
 * Durations are in milliseconds.
 *
 * Every attempt that was started is followed by either `attempt.ended` or `attempt.commit_refused`, unless its process died, a
 * drain abandoned it, or the store never responded to its commit.
 */
export type TaskEvent =
  /** The store has accepted the task. */
  | (TaskFields & { readonly event: 'task.enqueued' })
  /**
   * A task was not stored, because its queue or its API key had reached a limit. `action` is the action that was reported to
   * the caller.
   */
  | {
      readonly event: 'task.refused'
      readonly queue: string
      readonly task: string
      readonly limit: RefusedBy
      readonly action: 'rejected' | 'dropped'
    }
  /** A worker has fetched the task and is about to call its handler. */
  | (AttemptFields & {
      readonly event: 'attempt.started'
      /**
       * The time between the task becoming ready and the attempt starting. Known only for the first attempt, and not if the task expired
       * or was cancelled before its handler was called.
       */
      readonly waitedMs: number | undefined
    })
  /**
   * The store has confirmed that it carried out the verdict. Emitted exactly once, even if the store's first response was lost.
   */
  | (AttemptFields &
      AttemptEndFields & {
        readonly event: 'attempt.ended'
        readonly verdict: VerdictKind
        /**
         * The time until the next attempt, if the task is retried or snoozed, or is requeued while its queue or concurrency key
         * is throttled.
         */
        readonly delayMs: number | undefined
        /** The time since the task was enqueued, if the verdict ends the task. */
        readonly taskMs?: number | undefined
      })
  /** The attempt has ended, but its result is not stored, and another attempt or an operator decides what happens to the task. */
  | (AttemptFields &
      AttemptEndFields & {
        readonly event: 'attempt.commit_refused'
        readonly refusal: CommitRefusal
        /** The verdict that was not carried out. Undefined if the lock was lost before there was a verdict. */
        readonly verdict: VerdictKind | undefined
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
  /**
   * The store has cancelled a task before it started. Emitted once, by the process that ended the task, even if the store's first
   * response was lost. The event is missing if that process died before it emitted the event, or did not reach the store again
   * within a minute (ten minutes if it is the leader).
   */
  | (TaskFields & { readonly event: 'task.cancelled' })
  /**
   * The store has ended a task whose queue timeout expired before a worker fetched it. Emitted once, even if the store's first
   * response was lost. The event is missing if the leader died before it emitted the event, or did not reach the store again within
   * ten minutes.
   */
  | (TaskFields & { readonly event: 'task.expired' })
  /**
   * The store has ended a task that it would not start again: its workers died too often (`process_lost`), or a child of the flow
   * that the task waited for has failed (`unexpected_error`). If a task is dead because of an attempt, this event is not emitted,
   * because the attempt's own event already has the verdict `dead`.
   */
  | (TaskFields & {
      readonly event: 'task.dead'
      readonly reason: EndReason<'RECOVER_ERR'> & ('process_lost' | 'unexpected_error')
    })
  /** A pool has resumed fetching after a failure. Its slots were in RECOVER_ERR for `afterMs`. */
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
