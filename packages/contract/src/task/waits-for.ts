// Defines what a waiting task waits for, besides a free slot.

/** How many tasks in front of a task are counted. */
export const MAX_AHEAD = 1_000

/**
 * - `turn`: the turn of its concurrency key.
 * - `concurrency`: until another task of its key ends or the limit is raised, because the key has as many running tasks as its
 *   limit allows.
 * - `rate`: until the rate of its key allows the next start, or until a handler's throttle of the key ends.
 * - `permits`: until enough permits are free.
 * - `definition`: until another task of its definition ends, because as many of them run as its `concurrency` allows.
 * - `breaker`: until the circuit breaker of a service that it depends on lets it start.
 */
export const WAIT_KINDS = ['turn', 'concurrency', 'rate', 'permits', 'definition', 'breaker'] as const

export interface WaitsFor {
  readonly kind: (typeof WAIT_KINDS)[number]
  /** The name of the permits, or of the definition. Only if `kind` is `permits` or `definition`. */
  readonly limiter?: string
  /** The service. Only if `kind` is `breaker`. */
  readonly service?: string
  /**
   * When the key may start its next task, or when the next task may probe the service, in ms since 1970. Only if `kind` is
   * `rate` or `breaker`.
   */
  readonly until?: number
  /** How many tasks of the same concurrency key that need the same permits start before this one. At most 1,000 are counted. */
  readonly ahead: number
}
