// Computes how many replicas a Deployment needs according to its metrics, as the HorizontalPodAutoscaler of Kubernetes does for external
// metrics with an AverageValue: `GetExternalPerPodMetricReplicas` and `computeReplicasForMetrics` of Kubernetes 1.32.

export interface MetricReading {
  /** The metric's total for all replicas. Undefined if it could not be read. */
  readonly total: number | undefined
  /** What each replica should have of it. */
  readonly target: number
}

/** The default of the controller's flag `--horizontal-pod-autoscaler-tolerance`. */
const TOLERANCE = 0.1

/**
 * Returns the largest number that a metric calls for, or undefined if the present number must stay as it is: if no metric could be read,
 * or if one could not be read and the others call for fewer replicas.
 */
export function wantedReplicas(present: number, readings: readonly MetricReading[]): number | undefined {
  const known = readings.flatMap(({ total, target }) => (total === undefined ? [] : neededFor(present, total, target)))
  if (known.length === 0) return undefined
  const wanted = Math.max(...known)
  return known.length < readings.length && wanted < present ? undefined : wanted
}

function neededFor(present: number, total: number, target: number): number {
  const usage = total / (target * present)
  return Math.abs(1 - usage) > TOLERANCE ? Math.ceil(total / target) : present
}
