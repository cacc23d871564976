// What is known of a drill when it is over: the ledger, which is written outside the system under test, and how the tasks ended
// according to the system.
import type { Effect } from './effects.ts'
import type { AttemptCounts, AttemptEnd } from './worker-metrics.ts'

/** How a task ended, according to the system. */
export interface End {
  readonly status: string
  readonly attemptsMade: number
  readonly attempts?: readonly AttemptEnd[]
  /** Unix time in ms. */
  readonly enqueuedAt?: number
  readonly output?: unknown
  /** Who retried the task after it was dead. */
  readonly retries?: readonly { readonly by: string }[]
}

/** An attempt that was interrupted, and the time of the interruption, from which its task waits for the next attempt. */
export interface Interruption {
  readonly id: string
  readonly worker: string
  /** Unix time in ms. */
  readonly at: number
}

/** The exit of a worker that was asked to shut down. */
export interface Exit {
  readonly worker: string
  /** Null if the worker did not exit in time and was killed. */
  readonly code: number | null
  /** Unix time in ms. */
  readonly at: number
  /** Time since the signal. */
  readonly tookMs: number
}

export interface Ledger {
  readonly accepted: readonly string[]
  /** The accepted tasks that have ended. */
  readonly ends: ReadonlyMap<string, End>
  /** How often each task was recorded as completed. */
  readonly completions: ReadonlyMap<string, number>
  readonly effects: readonly Effect[]
  readonly interruptions: readonly Interruption[]
  readonly exits: readonly Exit[]
  /** How long each attempt that had to be signalled waited for its signal, in ms. Infinite if it did not get one. */
  readonly signals?: readonly number[]
  /** The counters of each worker that was not killed. */
  readonly counts?: ReadonlyMap<string, AttemptCounts> | undefined
}
