// What happens to tasks, attempts and pools, as telemetry, results and webhooks hear of it.
import type { AttemptEndState, EndReason, FinalStatus, Isolation, PoolState, TaskKind } from './states.ts'

interface AboutTask {
  readonly queue: string
  readonly task: string
  readonly id: string
}

interface AboutAttempt extends AboutTask {
  readonly kind: TaskKind
  readonly start: number
  readonly attempt: number
  readonly correlationId: string | undefined
}

/** What follows for the task when an attempt has ended. */
export type Consequence =
  | FinalStatus
  | 'retrying'
  /** To the head of its queue, no attempt used. */
  | 'handed_back'
  /** Scheduled again at the handler's own wish, no attempt used. */
  | 'snoozed'
  /** Another process owns it by now, and decides. */
  | 'lost'

/** A closed union: consumers switch over `event` exhaustively. Durations are milliseconds. */
export type TaskEvent =
  | (AboutTask & { readonly event: 'task.enqueued' })
  | (AboutAttempt & {
      readonly event: 'attempt.started' /** Ready, but not taken; known for the first start alone. */
      readonly waitedMs: number | undefined
    })
  | (AboutAttempt & {
      readonly event: 'attempt.ended'
      readonly state: AttemptEndState
      readonly reason: EndReason | undefined
      readonly code: string | undefined
      readonly error: unknown
      readonly durationMs: number
      readonly verdict: Consequence
      /** Until the next attempt; for `retrying`, `snoozed`, and what is handed back while its queue is held. */
      readonly delayMs: number | undefined
    })
  /** The handler came back after its attempt had ended; its result was dropped. */
  | (AboutAttempt & { readonly event: 'attempt.late'; readonly overrunMs: number })
  /** A thread or child process ended for another reason than having nothing to do; another takes its place. */
  | {
      readonly event: 'isolate.replaced'
      readonly isolation: Exclude<Isolation, 'inline'>
      readonly isolate: string
      readonly cause: string
    }
  /** A task was cancelled that nobody ran. */
  | (AboutTask & { readonly event: 'task.cancelled' })
  /** A task waited longer than its queue timeout and nobody took it; found by the sweep. */
  | (AboutTask & { readonly event: 'task.expired' })
  /** A pool's fetching failed and begins again; its workers were RECOVER_ERR for so long. */
  | { readonly event: 'workers.restarted'; readonly queue: string; readonly workers: number; readonly afterMs: number }
  /** The event loop turns again after a block that was told of; the rest says which attempt held it, where that is known. */
  | {
      readonly event: 'loop.blocked'
      readonly task: string | undefined
      readonly id: string | undefined
      readonly start: number | undefined
      readonly attempt: number | undefined
      /** Function, file and line. */
      readonly place: string | undefined
      readonly blockedMs: number
    }
  | { readonly event: 'pool.state'; readonly queue: string; readonly from: PoolState; readonly to: PoolState }
