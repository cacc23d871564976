// The figures of schedules.

export interface ScheduleFigures {
  /** The ticks of a schedule, and how many of them have no task, more than one, or one that was enqueued too early. */
  readonly ticks?: number
  readonly ticksMissed?: number
  readonly ticksDoubled?: number
  readonly ticksEarly?: number
  /** Time from a tick to its enqueue, by Redis's clock. */
  readonly tickLateP50Ms?: number | undefined
  readonly tickLateP99Ms?: number | undefined
}
