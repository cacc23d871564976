// Defines what a waiting task waits for, besides a free slot.

/** How many tasks in front of a task are counted. */
export const MAX_AHEAD = 1_000

export interface WaitsFor {
  /** `turn`: the concurrency keys of its queue take turns. */
  readonly kind: 'turn'
  /** How many tasks of the same concurrency key start before this one. At most 1,000 are counted. */
  readonly ahead: number
}
