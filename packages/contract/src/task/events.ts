// What happens to tasks, attempts and pools, as telemetry, results and webhooks hear of it.
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
  /** To the head of its queue, no attempt used. */
  | 'requeued'
  /** Scheduled again at the handler's own wish, no attempt used. */
  | 'snoozed'
  /** Another process owns it by now, and decides. */
  | 'lost'

/** A closed union: consumers switch over `event` exhaustively. Durations are milliseconds. */
export type TaskEvent =
  | (TaskFields & { readonly event: 'task.enqueued' })
  | (AttemptFields & {
      readonly event: 'attempt.started' /** Ready, but not taken; known for the first start alone. */
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
      /** Until the next attempt; for `retrying`, `snoozed`, and what is handed back while its queue is held. */
      readonly delayMs: number | undefined
    })
  /** The handler came back after its attempt had ended; its result was dropped. */
  | (AttemptFields & { readonly event: 'attempt.late'; readonly overrunMs: number })
  /** A thread or child process ended for another reason than having nothing to do; another takes its place. */
  | {
      readonly event: 'isolate.replaced'
      readonly isolation: Exclude<Isolation, 'inline'>
      readonly isolate: string
      readonly cause: string
    }
  /** A task was cancelled that nobody ran. */
  | (TaskFields & { readonly event: 'task.cancelled' })
  /** A task waited longer than its queue timeout and nobody took it; found by the sweep. */
  | (TaskFields & { readonly event: 'task.expired' })
  /** A pool's fetching failed and begins again; its workers were RECOVER_ERR for so long. */
  | { readonly event: 'slots.restarted'; readonly queue: string; readonly slots: number; readonly afterMs: number }
  /** The event loop turns again after a block that was told of; the rest says which attempt held it, where that is known. */
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
