// Defines what a pool and its slots report about themselves.
import type { DrainMode, PoolState, SlotState } from '@bullpen/contract'

export interface SlotStatus {
  /** The slot's number in its pool, starting from 1. */
  readonly slot: number
  readonly state: SlotState
  /** When the slot entered this state, in ms since 1970. */
  readonly since: number
  readonly task:
    | {
        readonly id: string
        readonly task: string
        readonly fencingToken: number
        /** When the attempt's run timeout expires, in ms since 1970. Undefined if the attempt does not have one. */
        readonly timeoutAt?: number | undefined
      }
    | undefined
}

export interface PoolStatus {
  readonly queue: string
  readonly state: PoolState
  readonly paused: boolean
  /** The number of slots, not counting slots that are stopping. */
  readonly concurrency: number
  readonly busy: number
  /** The number of handlers that are still running after their attempts have ended. */
  readonly stuckHandlers: number
  /** Why the pool is not fetching tasks. Undefined if it is fetching tasks. */
  readonly notReady: string | undefined
  /** How the pool drains on SIGTERM. Absent if the worker's version does not report it. */
  readonly drainSettings?: { readonly mode: DrainMode; readonly timeoutMs: number; readonly graceMs: number }
  readonly slots: readonly SlotStatus[]
}
