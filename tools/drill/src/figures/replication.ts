// The figures of failovers.

export interface ReplicationFigures {
  /** Acknowledged tasks that do not exist after failovers, and how many of them Bullpen's metrics have reported. */
  readonly acknowledgedLost?: number
  readonly reportedLost?: number
  /** Lost tasks that were not reported, reported tasks that are not lost, and by how much the log and the metrics differ from the ledger. */
  readonly misreported?: number
  /** Failovers after which the alert did not fire although tasks were lost, or fired although none was. */
  readonly alertsWrong?: number
  /** Tasks whose end was lost, so that they have completed twice. */
  readonly resultsLost?: number
  readonly failovers?: number
}
