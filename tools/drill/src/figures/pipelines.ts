// The figures of pipelines.

export interface PipelineFigures {
  /** Lines of the outputs of pipelines that `md5sum` has not printed. */
  readonly linesWrong?: number
  /** Results of ordered pipelines that came after the result of a later item. */
  readonly misordered?: number
  /** By how many items the counts of pipelines' runs differ from the number of files. */
  readonly runsMiscounted?: number
  /** Files of which the ledger has no digest. */
  readonly undigested?: number
  /** Keys of runs that have ended, except for their records, and records that do not expire. */
  readonly runKeysLeft?: number
  /** Tasks of runs that have ended. */
  readonly tasksLeft?: number
  /** Results of attempts that had lost their lock. */
  readonly lateResultsRefused?: number
  /** What Redis stores for runs, without the results that are kept for a reduction: the peaks over time, and the range. */
  readonly memoryKiB?: readonly number[]
  readonly memoryMinKiB?: number
  readonly memoryMedianKiB?: number
  readonly memoryMaxKiB?: number
  /** By how much the peak of the last third of a run's results exceeds that of the first third, without the first run. */
  readonly memoryGrowthKiB?: number
  /** The most that Redis takes for a run, including these results and the buffers of connections. */
  readonly usedMemoryMaxKiB?: number
  /** The most items that waited for a stage. */
  readonly waitingMost?: number
  /** How long it takes to compute all digests: `md5sum`, a pipeline in one process, and the fleet without and with faults. */
  readonly md5sumMs?: number
  readonly oneProcessMs?: number
  readonly undisturbedMs?: number
  readonly disturbedMs?: number
}
