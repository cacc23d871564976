// Decides how many replicas a Deployment gets, as the HorizontalPodAutoscaler of Kubernetes does: what its metrics call for,
// stabilised over a window, and limited by the policies for each direction. Follows `stabilizeRecommendationWithBehaviors` and
// `convertDesiredReplicasWithBehaviorRate` of Kubernetes 1.32.
// https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details
import type { ScalingBehavior, ScalingRules } from '../../../../k8s/manifest.ts'
import { type MetricReading, wantedReplicas } from './wanted-replicas.ts'

export interface ScalingLimits {
  readonly minReplicas: number
  readonly maxReplicas: number
  /** All times are in seconds. */
  readonly behavior: ScalingBehavior
}

export interface ScalingDecision {
  /** What the metrics call for, or the present number if they cannot be read. */
  readonly wanted: number
  /** How many replicas there should be from now on. */
  readonly replicas: number
}

export interface ReplicaAutoscaler {
  /** Call it once per sync period. `now` is in seconds. The caller then sets the number of replicas. */
  decide(present: number, readings: readonly MetricReading[], now: number): ScalingDecision
}

interface Recommendation {
  readonly at: number
  readonly replicas: number
}

interface Change {
  readonly at: number
  /** How many replicas were added, or removed if it is negative. */
  readonly by: number
}

type Direction = 'up' | 'down'

export function createReplicaAutoscaler({ minReplicas, maxReplicas, behavior }: ScalingLimits): ReplicaAutoscaler {
  const { scaleUp = {}, scaleDown = {} } = behavior
  const recommendations: Recommendation[] = []
  const changes: Change[] = []

  /** The recommendation that is nearest to the present number among those that all of a direction's window allows. */
  function stabilised(present: number, wanted: number, now: number): number {
    const within = ({ stabilizationWindowSeconds: window = 0 }: ScalingRules): readonly number[] => [
      wanted,
      ...recommendations.filter(({ at }) => at > now - window).map(({ replicas }) => replicas),
    ]
    const atLeast = Math.min(...within(scaleUp))
    const atMost = Math.max(...within(scaleDown))
    return Math.min(Math.max(present, atLeast), atMost)
  }

  function limited(present: number, wanted: number, now: number): number {
    if (wanted > present) return Math.min(wanted, Math.max(limitOf('up', scaleUp, present, now), present), maxReplicas)
    if (wanted < present)
      return Math.max(wanted, Math.min(limitOf('down', scaleDown, present, now), present), minReplicas)
    return wanted
  }

  function limitOf(
    direction: Direction,
    { policies = [], selectPolicy = 'Max' }: ScalingRules,
    present: number,
    now: number,
  ): number {
    if (selectPolicy === 'Disabled') return present
    const limits = policies.map(({ type, value, periodSeconds }) => {
      const changed = changes.filter(({ at }) => at > now - periodSeconds).reduce((sum, { by }) => sum + by, 0)
      const atStart = present - changed
      if (direction === 'up') return type === 'Pods' ? atStart + value : Math.ceil(atStart * (1 + value / 100))
      return type === 'Pods' ? atStart - value : Math.trunc(atStart * (1 - value / 100))
    })
    // Max selects the policy that allows the largest change.
    return (selectPolicy === 'Max') === (direction === 'up') ? Math.max(...limits) : Math.min(...limits)
  }

  return {
    decide(present, readings, now) {
      const allowed = Math.min(Math.max(present, minReplicas), maxReplicas)
      if (allowed !== present) return { wanted: allowed, replicas: allowed }
      if (recommendations.length === 0) recommendations.push({ at: now, replicas: present })
      const wanted = wantedReplicas(present, readings)
      if (wanted === undefined) return { wanted: present, replicas: present }
      const replicas = limited(present, stabilised(present, wanted, now), now)
      recommendations.push({ at: now, replicas: wanted })
      if (replicas !== present) changes.push({ at: now, by: replicas - present })
      return { wanted, replicas }
    },
  }
}
