// The figures of dead tasks that are retried by filter.

export interface DeadTaskFigures {
  /** How long it takes to count the dead tasks by kind of error, and to retry those of one kind. */
  readonly countMs?: number
  readonly retryMs?: number
  /** How many tasks a retry by filter retried in a second, at the median of the seconds in which it retried any. */
  readonly retriedPerSecond?: number | undefined
  /** Tasks that a retry by filter selects, but whose history does not name one retry by its requester. */
  readonly historiesWrong?: number
  /** Dead tasks that a retry by filter does not select, but that were changed or are miscounted by kind of error. */
  readonly othersChanged?: number
  /** By how many tasks the audit line and the progress of a retry by filter differ from the number of selected tasks. */
  readonly auditOff?: number
}
