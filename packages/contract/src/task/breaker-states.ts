// Defines the states of a circuit breaker.

export const BREAKER_STATES = [
  /** Tasks start, and their calls are counted. The breaker opens when too many of them fail or are slow. */
  'closed',
  /** No task that depends on the service starts. The breaker becomes half-open when its time has passed. */
  'open',
  /** A few tasks probe the service. The breaker closes when enough of them succeed, and opens when one fails or is slow. */
  'half_open',
] as const

export type BreakerState = (typeof BREAKER_STATES)[number]

export const BREAKER_MODES = [
  /** The calls determine the state. */
  'auto',
  /** The breaker stays open, and nothing probes the service. */
  'open',
  /** The breaker stays closed, however many calls fail. */
  'closed',
] as const

/** Who determines the state of a circuit breaker: its calls, or a person who has set it. */
export type BreakerMode = (typeof BREAKER_MODES)[number]
