// Defines why a task that has not ended does not run: a closed list of reasons, each with what is known about it. Times are in
// milliseconds since 1970.
import type { DrainMode } from '../fleet/commands.ts'

/** How many tasks in front of a task are counted. A larger number is given as this one. */
export const MAX_AHEAD = 1_000

/** What keeps a task from starting although a slot is free: its turn, a limit, or a circuit breaker. */
export type LaneWait =
  /** The turn of the task's concurrency key. */
  | { readonly kind: 'turn'; readonly ahead: number }
  /**
   * Until another task of its concurrency key ends or the limit is raised, because as many tasks of that key are running as its limit
   * allows.
   */
  | { readonly kind: 'concurrency'; readonly ahead: number }
  /** Until the rate limit of its concurrency key allows the next start, or until a handler's throttle of that key ends. */
  | { readonly kind: 'rate'; readonly until?: number; readonly ahead: number }
  /** Until enough permits are free. */
  | { readonly kind: 'permits'; readonly limiter: string; readonly ahead: number }
  /** Until another task of its definition ends, because as many of them run as its `concurrency` allows. */
  | { readonly kind: 'definition'; readonly limiter: string; readonly ahead: number }
  /** Until the circuit breaker of a service lets it start. Without `until`, a request has to close the breaker. */
  | { readonly kind: 'breaker'; readonly service: string; readonly until?: number; readonly ahead: number }

/** What keeps every task of a queue from starting. */
export type QueueWait =
  /**
   * A command has paused the queue. `since` and `by` are absent if another program has paused it, or if the command is older than a week.
   */
  | { readonly kind: 'paused'; readonly since?: number; readonly by?: string }
  /** A command is draining the queue, or has drained it. */
  | { readonly kind: 'drain'; readonly mode: DrainMode; readonly since: number; readonly by?: string }
  /** The queue's outbox is full. */
  | { readonly kind: 'outbox' }
  /** No live worker has a pool on the queue. `since` is when the last one reported itself. Absent if none has within 30 days. */
  | { readonly kind: 'no_worker'; readonly since?: number }
  /** All workers of the queue are shutting down. */
  | { readonly kind: 'workers_draining'; readonly workers: number }
  /** Commands have paused all workers of the queue. */
  | { readonly kind: 'workers_paused'; readonly workers: number }
  /** No worker of the queue can fetch tasks. `reason` is what one of them reports. */
  | { readonly kind: 'workers_not_ready'; readonly workers: number; readonly reason: string }
  /** All workers of the queue run only given tasks or groups. */
  | { readonly kind: 'workers_reserved'; readonly workers: number }
  /** A handler has throttled the queue. */
  | { readonly kind: 'throttle'; readonly until: number }
  /** The queue's rate limit. */
  | { readonly kind: 'queue_rate'; readonly until: number; readonly max: number; readonly perMs: number }
  /** As many tasks of the queue are running as a command allows. */
  | { readonly kind: 'queue_concurrency'; readonly limit: number; readonly ahead: number }
  /** A slot. `busy` of the queue's `slots` are in use, and `ahead` tasks start before this one. */
  | { readonly kind: 'slot'; readonly slots: number; readonly busy: number; readonly ahead: number }

/** What keeps a single task from waiting for a slot. */
export type TimeWait =
  /** Until a scheduled task is due. */
  | { readonly kind: 'scheduled'; readonly until: number }
  /** Until the next attempt is due. */
  | { readonly kind: 'retry'; readonly until: number; readonly attempt: number; readonly maxAttempts: number }
  /** Until a worker that can run the task fetches it. `worker` could not run it, for example because its catalogue is older. */
  | { readonly kind: 'unsupported'; readonly until: number; readonly worker: string; readonly code: string }
  /** Until a worker has room for the quarantined task, which is due again at `until`. */
  | { readonly kind: 'quarantine'; readonly until: number }
  /** Until the leader returns the task to its queue, because the worker was lost. */
  | { readonly kind: 'recovery' }

export type WaitsFor = LaneWait | QueueWait | TimeWait
