// Runs an autoscaler on Prometheus: at each sync period, it reads the metrics of its manifest and sets the number of replicas.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ScalingBehavior, ScalingRules } from '../../../../k8s/manifest.ts'
import type { DrillPrometheus } from '../environment/prometheus/prometheus.ts'
import type { AutoscalerManifest, ExternalTarget } from './autoscaler-manifest.ts'
import { createReplicaAutoscaler } from './replica-autoscaler.ts'
import type { Replicas } from './replicas.ts'
import type { ScalingSample } from './scaling-figures.ts'

export interface AutoscalerRun {
  /** What the autoscaler has decided at each sync so far. */
  readonly samples: readonly ScalingSample[]
  /** Ends after the present sync. */
  stop(): Promise<void>
}

/** The default of the controller's flag `--horizontal-pod-autoscaler-sync-period`. */
export const SYNC_PERIOD_MS = 15_000

/** All periods and windows of the autoscaler are divided by `compression`. */
export function runAutoscaler(
  manifest: AutoscalerManifest,
  compression: number,
  { prometheus, replicas }: { readonly prometheus: DrillPrometheus; readonly replicas: Replicas },
): AutoscalerRun {
  const behavior = compressed(manifest.behavior, compression)
  const autoscaler = createReplicaAutoscaler({ ...manifest, behavior })
  const samples: ScalingSample[] = []
  let stopping = false

  const sync = async (): Promise<void> => {
    const readings = await Promise.all(
      manifest.metrics.map(async (metric) => ({ total: await totalOf(metric, prometheus), target: metric.target })),
    )
    const now = Date.now()
    const from = replicas.count
    const { wanted, replicas: to } = autoscaler.decide(from, readings, now / 1_000)
    replicas.scaleTo(to)
    const [running, draining] = [replicas.running(), replicas.draining()]
    samples.push({ at: now, wanted, from, to, running, draining })
  }
  const running = (async () => {
    const startedAt = performance.now()
    for (let n = 1; !stopping; n++) {
      await sync()
      await sleep(Math.max(0, startedAt + (n * SYNC_PERIOD_MS) / compression - performance.now()))
    }
  })()
  return {
    samples,
    async stop() {
      stopping = true
      await running
    },
  }
}

/** Returns the sum of the metric's values, or undefined if it has none or Prometheus does not respond. */
export async function totalOf(
  { expression }: ExternalTarget,
  prometheus: DrillPrometheus,
): Promise<number | undefined> {
  const values = await prometheus.query(expression).catch(() => [])
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0)
}

/** Returns the same behaviour with all times divided. */
export function compressed({ scaleUp, scaleDown }: ScalingBehavior, compression: number): ScalingBehavior {
  const shorter = (rules: ScalingRules = {}): ScalingRules => ({
    ...rules,
    stabilizationWindowSeconds: (rules.stabilizationWindowSeconds ?? 0) / compression,
    policies: (rules.policies ?? []).map((policy) => ({
      ...policy,
      periodSeconds: policy.periodSeconds / compression,
    })),
  })
  return { scaleUp: shorter(scaleUp), scaleDown: shorter(scaleDown) }
}
