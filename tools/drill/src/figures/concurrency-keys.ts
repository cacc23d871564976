// The figures of concurrency keys: their turns and their limits.

export interface ConcurrencyKeyFigures {
  /** The 99th percentile of the waits behind a tenth of a backlog, and by how much it is longer behind the whole backlog. */
  readonly waitP99TenthMs?: number | undefined
  readonly waitGrowthMs?: number | undefined
  /**
   * The most tasks of a noisy concurrency key that started between the enqueue and the start of a task of another key, and the
   * tasks of other keys that started when the noisy key had no task waiting. Undefined if the order of the starts is not known.
   */
  readonly noisyStartsMost?: number | undefined
  readonly unopposed?: number | undefined
  /** By how many places tasks have exceeded a limit at most. */
  readonly aboveLimit?: number
  /**
   * The attempts that frozen workers still ran after their locks had expired, when other tasks may have taken their places, and by how many
   * places tasks have exceeded a limit at most if these attempts are counted as well.
   */
  readonly ranUnlocked?: number
  readonly aboveLimitWithUnlocked?: number
  /** Limits whose places were never all held at once. */
  readonly limitsNotReached?: number
  /** Attempts that started after the one that completed their task. */
  readonly ranAfterEnd?: number
  /** Places that are still held when all tasks have ended. */
  readonly placesHeld?: number
  /** Like `recoveryP99Ms`, but only for the tasks that need no permits. */
  readonly recoveryWithoutPermitsP99Ms?: number | undefined
  /** What leaders have repaired of a queue's status index, totals and counts of active tasks. */
  readonly repairs?: number
}
