// What a pool and its slots report to the fleet and to people.
import type { PoolState, SlotState } from '@bullpen/contract'

export interface SlotStatus {
  /** The number of the slot in its pool, from 1. */
  readonly slot: number
  readonly state: SlotState
  /** When the slot entered this state, in ms since 1970. */
  readonly since: number
  readonly task:
    | {
        readonly id: string
        readonly task: string
        readonly fencingToken: number
        /** When the attempt's run timeout passes, in ms since 1970. Undefined if it has none. */
        readonly timeoutAt?: number | undefined
      }
    | undefined
}

export interface PoolStatus {
  readonly queue: string
  readonly state: PoolState
  readonly paused: boolean
  /** How many slots the pool has, not counting slots that are stopping. */
  readonly concurrency: number
  readonly busy: number
  /** How many handlers are still running after their attempt has ended. */
  readonly stuckHandlers: number
  /** Why the pool fetches no tasks. Undefined if it fetches tasks. */
  readonly notReady: string | undefined
  readonly slots: readonly SlotStatus[]
}
