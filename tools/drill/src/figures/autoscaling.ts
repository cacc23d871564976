// The figures of an autoscaler.

export interface AutoscalingFigures {
  /** The highest and the last number of workers that an autoscaler asked for. */
  readonly mostWorkers?: number
  readonly lastWorkers?: number
  /** By how many workers the last number differs from what the load needs. */
  readonly workersOff?: number
  /** How often an autoscaler turned from adding workers to removing them, or back. */
  readonly directionChanges?: number
  /** Steps of an autoscaler that exceed the limits of its manifest. */
  readonly stepsBeyondLimits?: number
  /** Time from the beginning of a burst until workers were added. Undefined if none were. */
  readonly scaledUpMs?: number | undefined
  /** Time from the end of a burst until the last of the added workers was told to end. Undefined if none was. */
  readonly scaledDownMs?: number | undefined
}
