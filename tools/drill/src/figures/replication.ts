// The figures of failovers and of connections that become silent.

export interface ReplicationFigures {
  /** Acknowledged tasks that do not exist after failovers, and how many of them Bullpen's metrics have reported. */
  readonly acknowledgedLost?: number
  readonly reportedLost?: number
  /**
   * Lost tasks that were not reported, reported tasks that are not lost, and by how much the log and the metrics differ from the ledger.
   */
  readonly misreported?: number
  /** Failovers after which the alert did not fire although tasks were lost, or fired although none was. */
  readonly alertsWrong?: number
  /** Tasks whose end was lost, so that they have completed twice. */
  readonly resultsLost?: number
  /** The failovers, or how often the connections became silent. */
  readonly silences?: number
  readonly failovers?: number
  /** The longest time from a fault to the last call that failed because of it. */
  readonly errorsEndMs?: number
  readonly processesEnded?: number
  /** The longest time for which a process was ready without having worked, or not ready after a fault. It should be 15 s at most. */
  readonly readinessLateMs?: number
  /** Processes that were ready for a minute without working, or were not ready for a minute. */
  readonly readinessWrong?: number
}
