// Drill `autoscale`: a burst of ten times the usual load reaches workers that an autoscaler scales. The autoscaler follows the algorithm of
// Kubernetes. Its metrics, targets and limits, and the settings of the workers, are those of the rendered manifests, and a real Prometheus
// answers its queries.
import { type ExternalTarget, POD_NAMESPACE, readAutoscaler } from '../autoscale/autoscaler-manifest.ts'
import { compressed, runAutoscaler, SYNC_PERIOD_MS, totalOf } from '../autoscale/autoscaler-run.ts'
import { type BurstPlan, enqueueBurst } from '../autoscale/burst-load.ts'
import { createReplicas } from '../autoscale/replicas.ts'
import { scalingFigures } from '../autoscale/scaling-figures.ts'
import { drawScaling } from '../autoscale/scaling-picture.ts'
import { waitFigures, waitsOf } from '../autoscale/waits.ts'
import type { Drill } from '../drill.ts'
import { startApi } from '../environment/drill-api.ts'
import { openRedis, withDrillSetup } from '../environment/drill-setup.ts'
import { type DrillPrometheus, openPrometheus } from '../environment/prometheus/prometheus.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { holdsWithin } from '../holds-within.ts'
import { interruptedByRequeue } from '../ledger/attempts.ts'
import { type Random, randomFrom } from '../ledger/random.ts'
import { mailWork } from '../programs/catalogue.ts'
import type { Scale } from '../report.ts'

interface Plan extends BurstPlan {
  /** By how much the autoscaler's periods and windows, and the intervals of Prometheus, are shorter than on Kubernetes. */
  readonly compression: number
  /** The number of workers with 50 slots of which the usual load keeps at most 80% busy. */
  readonly needed: number
  /** Whether the picture in the documentation is drawn. */
  readonly draws: boolean
}

const PLANS: Readonly<Record<Scale, Plan>> = {
  small: {
    ...{ compression: 10, draws: false, shortestMs: 1_000, longestMs: 5_000, usual: 60, needed: 2, times: 10 },
    ...{ beforeMs: 5_000, burstMs: 10_000, afterMs: 160_000 },
  },
  full: {
    ...{ compression: 8, draws: true, shortestMs: 1_000, longestMs: 30_000, usual: 100, needed: 3, times: 10 },
    ...{ beforeMs: 30_000, burstMs: 30_000, afterMs: 180_000 },
  },
}

const AUTOSCALER = 'bullpen-worker-io'
const APIS = 2
const KNOWN_WITHIN_MS = 60_000
const IDLE_WITHIN_MS = 120_000
/**
 * What the autoscaler sees is up to one scrape, one evaluation and one sync old. A few more pass until the backlog calls for
 * more workers.
 */
const SCALED_UP_WITHIN_SYNCS = 6

export const autoscale: Drill = {
  name: 'autoscale',
  target(scale) {
    const { compression, needed, afterMs } = PLANS[scale]
    return {
      text: `workers are added within the manifest's limits, and removed until ${needed} are left; one change of direction; no attempt is interrupted, and every worker exits with 0`,
      atMost: {
        attemptsUsed: 0,
        restarted: 0,
        interrupted: 0,
        miscounted: 0,
        exitsNotZero: 0,
        stepsBeyondLimits: 0,
        directionChanges: 1,
        workersOff: 0,
        scaledUpMs: (SCALED_UP_WITHIN_SYNCS * SYNC_PERIOD_MS) / compression,
        scaledDownMs: afterMs,
      },
    }
  },
  known: undefined,
  comparable: false, // plain BullMQ has no metrics
  run: (scale, seed) => runBurst(PLANS[scale], randomFrom(seed)),
}

async function runBurst(plan: Plan, random: Random): Promise<Figures> {
  const { compression, draws } = plan
  const manifest = readAutoscaler(AUTOSCALER)
  const redis = async () => ({ ...(await openRedis()), queues: [mailWork.queue] })
  return withDrillSetup(
    'bullpen',
    manifest.worker,
    async ({ redisUrl, namespace, broker, fleet, untilIdle, records }) => {
      await using opened = new AsyncDisposableStack()
      const prometheus = opened.adopt(await openPrometheus(SYNC_PERIOD_MS / compression), (each) => each.close())
      const apis = await Promise.all(Array.from({ length: APIS }, () => startApi({ redisUrl, namespace })))
      for (const api of apis) opened.adopt(api, (each) => each.close())
      const scrape = (): void => {
        const urls = [...apis.map(({ metricsUrl }) => metricsUrl), ...replicas.urls()]
        prometheus.scrape(urls, { namespace: POD_NAMESPACE })
      }
      const killAfterMs = manifest.terminationGraceMs
      const replicas = createReplicas({ start: () => fleet.start(), killAfterMs, changed: scrape })
      replicas.scaleTo(manifest.minReplicas)
      await replicas.settled()
      await untilKnown(manifest.metrics, prometheus)

      const startedAt = Date.now()
      const autoscaler = runAutoscaler(manifest, compression, { prometheus, replicas })
      const { accepted, burst } = await enqueueBurst(broker, mailWork, plan, random).finally(autoscaler.stop)
      const counts = (status: 'waiting' | 'active') => {
        const expression = `max(bullpen_queue_tasks{queue="${mailWork.queue}", status="${status}"})`
        return prometheus.history(expression, { from: startedAt / 1_000, to: Date.now() / 1_000, step: 1 })
      }
      const [waiting, active] = [await counts('waiting'), await counts('active')]
      await untilIdle(IDLE_WITHIN_MS)
      await replicas.settled()
      const { requeues, effects, ends, ...rest } = await records(accepted)
      const waits = waitsOf(ends, effects)
      const { samples } = autoscaler
      if (draws) await drawScaling({ waiting, active, samples, waits })
      const limits = { ...manifest, behavior: compressed(manifest.behavior, compression) }
      const scaling = scalingFigures(samples, limits, burst)
      const interruptions = interruptedByRequeue(requeues, effects)
      return {
        ...figuresOf({ accepted, effects, ends, ...rest, interruptions, exits: replicas.exits }),
        ...scaling,
        workersOff: Math.abs(scaling.lastWorkers - plan.needed),
        ...waitFigures(waits),
      }
    },
    redis,
  )
}

/** Waits until Prometheus has recorded all metrics, because an autoscaler does not remove workers while one is unknown. */
async function untilKnown(metrics: readonly ExternalTarget[], prometheus: DrillPrometheus): Promise<void> {
  const areKnown = async (): Promise<boolean> => {
    const totals = await Promise.all(metrics.map((metric) => totalOf(metric, prometheus)))
    return totals.every((total) => total !== undefined)
  }
  if (!(await holdsWithin(KNOWN_WITHIN_MS, areKnown))) throw new Error('Prometheus has not recorded the metrics')
}
