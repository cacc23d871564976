// What a pool and its slots report about themselves, to the fleet and to people.
import type { PoolState, SlotState } from '@bullpen/contract'

export interface SlotStatus {
  /** From 1. */
  readonly slot: number
  readonly state: SlotState
  /** When it entered this state, in ms since 1970. */
  readonly since: number
  readonly task:
    | {
        readonly id: string
        readonly task: string
        readonly fencingToken: number
        /** When its run timeout passes, in ms since 1970; undefined when it has none. */
        readonly timeoutAt?: number | undefined
      }
    | undefined
}

export interface PoolStatus {
  readonly queue: string
  readonly state: PoolState
  readonly paused: boolean
  /** Slots that are not ending. */
  readonly concurrency: number
  readonly busy: number
  /** Handlers that still run after their attempt has ended. */
  readonly stuckHandlers: number
  /** Why it fetches no tasks; undefined when it does. */
  readonly notReady: string | undefined
  readonly slots: readonly SlotStatus[]
}
