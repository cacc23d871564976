// Defines the port that shows the circuit breakers of a queue, and that sets them by hand. The breakers themselves act where
// tasks start and end: a consumer does not fetch a task whose breaker is open, and counts the calls of an `AttemptResult` in
// the step that carries out its verdict.
import type { BreakerMode, BreakerSettings, BreakerState, BreakersOf } from '@bullpen/contract'

export interface BreakerStatus {
  readonly service: string
  readonly state: BreakerState
  readonly mode: BreakerMode
  /** When the breaker entered its current state, in ms since 1970. Undefined if its state has never changed. */
  readonly since: number | undefined
  /** When the next task may start, in ms since 1970. Undefined if one may start now, or if the breaker stays open until someone sets it. */
  readonly startsAt: number | undefined
  /** The calls of the window. All are 0 unless the breaker is closed. */
  readonly calls: number
  readonly failures: number
  readonly slow: number
  /** Who has set the mode, and when (in ms since 1970). Undefined if it has never been set. */
  readonly setBy: { readonly by: string; readonly at: number } | undefined
}

export interface SetBreaker {
  readonly queue: string
  readonly service: string
  readonly mode: BreakerMode
  /** Who sets the breaker. */
  readonly by: string
  /** The settings of the breaker in the queue's definition. */
  readonly settings: BreakerSettings
}

export interface Breakers {
  /**
   * Returns the status of each of the breakers that a queue defines, in the same order. Takes one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  list(queue: string, defined: BreakersOf): Promise<readonly BreakerStatus[]>
  /**
   * Sets the mode of a breaker, which applies to the next fetch of every worker. With `auto` after `open`, tasks probe the
   * service first. Running tasks are not affected. Setting the current mode again changes nothing, not even `setBy`. The call
   * is atomic and takes one round trip.
   *
   * @throws BullpenError `queue_not_found`.
   */
  set(setting: SetBreaker): Promise<BreakerStatus>
}
