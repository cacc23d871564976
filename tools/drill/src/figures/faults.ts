// The figures of what single faults lead to: signals, late ends, wrong clocks, outages, tasks that kill their process, and stuck queues.

export interface FaultFigures {
  /** Time from the request to the signal, at the median and the 99th percentile. Infinite if no signal came. */
  readonly signalP50Ms?: number | undefined
  readonly signalP99Ms?: number | undefined
  /** Tasks that passed their queue timeout and did not expire, or expired more than once. */
  readonly unexpired?: number
  readonly expiredTwice?: number
  /** The longest time from a queue timeout to the end of its task. */
  readonly expiryLateMaxMs?: number | undefined
  /** 1 if no process with a wrong clock has led. */
  readonly skewedNeverLed?: number
  /** Leader faults after which no other process took over. */
  readonly notTakenOver?: number
  /** Attempts beyond the first attempt of tasks that were not affected by a fault. */
  readonly restartedUnaffected?: number
  /** Tasks whose record contains the result of an attempt that had lost its lock. */
  readonly staleResultsStored?: number
  /** The largest difference between the time when a task was due and its start. Undefined if nothing was due. */
  readonly dueErrorMaxMs?: number | undefined
  readonly startedEarly?: number
  /** Workers whose clock was off but whose log does not report it. */
  readonly skewsUnreported?: number
  /** Calls that a provider received, and those of them that failed because it was down. */
  readonly calls?: number
  readonly callsWhileDown?: number
  /** The same for a provider behind a circuit breaker. */
  readonly guardedCalls?: number
  readonly guardedCallsWhileDown?: number
  /** Calls of this provider while it was down, beyond the first ones and one probe a second, and the most probes within a second. */
  readonly probesBeyondOne?: number
  readonly mostProbesPerSecond?: number
  /** Counted attempts of the tasks behind the breaker, beyond the calls that the provider received. */
  readonly attemptsBeyondCalls?: number
  /** Other tasks of the queue with the breaker that had not ended when the provider recovered. */
  readonly othersHeldUp?: number
  /** The highest number of attempts of one task. */
  readonly mostAttempts?: number
  /** Time from the provider's recovery until every task had ended. */
  readonly drainedMs?: number
  /** Tasks that killed their process, and how many of these are dead as poison. */
  readonly pills?: number
  readonly poisoned?: number
  /** Tasks that killed their process and are dead neither as poison nor by their own timeout. */
  readonly pillsOutlived?: number
  /**
   * Ways in which a queue was made stuck, those that the diagnosis or the alerts did not show, and those whose sign others show
   * as well.
   */
  readonly causes?: number
  readonly causesUnseen?: number
  readonly causesConfused?: number
  /** Time from the start of Workers that were not attached until the leader has named them. Infinite if it has not. */
  readonly unattachedSeenMs?: number
  /** By how much the counts of a queue, its totals and its bytes differ from its jobs. */
  readonly countsWrong?: number
  /** Handlers that blocked an event loop but are not named by any log line. */
  readonly stallsUnattributed?: number
}
