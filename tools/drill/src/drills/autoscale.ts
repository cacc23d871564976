// Drill `autoscale`: a burst of ten times the usual load reaches workers that an autoscaler scales. The autoscaler follows the algorithm of
// Kubernetes. Its metrics, targets and limits, and the settings of the workers, are those of the rendered manifests, and a real Prometheus
// answers its queries.
import { setTimeout as sleep } from 'node:timers/promises'
import { POD_NAMESPACE, readAutoscaler } from '../autoscale/autoscaler-manifest.ts'
import { compressed, runAutoscaler, SYNC_PERIOD_MS, totalOf } from '../autoscale/autoscaler-run.ts'
import { createReplicas } from '../autoscale/replicas.ts'
import { scalingFigures } from '../autoscale/scaling-figures.ts'
import { drawScaling } from '../autoscale/scaling-picture.ts'
import { waitsOf } from '../autoscale/waits.ts'
import type { Drill } from '../drill.ts'
import { startApi } from '../environment/drill-api.ts'
import { openRedis, withDrillSetup } from '../environment/drill-setup.ts'
import { openPrometheus } from '../environment/prometheus.ts'
import { holdsWithin } from '../holds-within.ts'
import { type Figures, figuresOf, interruptedByRequeue, rank } from '../ledger/figures.ts'
import { enqueueSteadily } from '../ledger/load.ts'
import { type Random, randomFrom } from '../ledger/random.ts'
import { mailWork } from '../programs/catalogue.ts'

interface Plan {
  /** By how much the autoscaler's periods and windows, and the intervals of Prometheus, are shorter than on Kubernetes. */
  readonly compression: number
  /** How long tasks take. Short ones are more frequent. */
  readonly shortestMs: number
  readonly longestMs: number
  /** How many tasks run at once under the usual load. */
  readonly usual: number
  readonly beforeMs: number
  readonly burstMs: number
  readonly afterMs: number
  readonly draws: boolean
}

const PLANS = {
  small: {
    ...{ compression: 10, shortestMs: 1_000, longestMs: 5_000, usual: 100 },
    ...{ beforeMs: 10_000, burstMs: 5_000, afterMs: 140_000, draws: false },
  },
  full: {
    ...{ compression: 8, shortestMs: 1_000, longestMs: 30_000, usual: 100 },
    ...{ beforeMs: 30_000, burstMs: 30_000, afterMs: 180_000, draws: true },
  },
} as const satisfies Record<string, Plan>

const AUTOSCALER = 'bullpen-worker-io'
const BURST = 10
const APIS = 2
/** The number of workers that the usual load needs: 100 busy slots of 50 are two workers, of which 80% may be busy. */
const NEEDED = 3
const KNOWN_WITHIN_MS = 60_000
const IDLE_WITHIN_MS = 120_000
/** What the autoscaler sees is up to one scrape, one evaluation and one sync old. A few more pass until the backlog calls for more workers. */
const SCALED_UP_WITHIN_SYNCS = 6

export const autoscale: Drill = {
  name: 'autoscale',
  target(scale) {
    const { compression, afterMs } = PLANS[scale]
    return {
      text: `workers are added within the manifest's limits, and removed until ${NEEDED} are left; one change of direction; no attempt is interrupted, and every worker exits with 0`,
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
  const { compression, beforeMs, burstMs, afterMs } = plan
  const manifest = readAutoscaler(AUTOSCALER)
  const interval = SYNC_PERIOD_MS / compression
  const redis = async () => ({ ...(await openRedis()), queues: [mailWork.queue] })
  return withDrillSetup(
    'bullpen',
    manifest.worker,
    async ({ redisUrl, namespace, broker, fleet, untilIdle, records }) => {
      await using opened = new AsyncDisposableStack()
      const prometheus = opened.adopt(await openPrometheus(interval), (each) => each.close())
      const apis = await Promise.all(Array.from({ length: APIS }, () => startApi({ redisUrl, namespace })))
      for (const api of apis) opened.adopt(api, (each) => each.close())
      const replicas = createReplicas({
        start: () => fleet.start(),
        killAfterMs: manifest.terminationGraceMs,
        changed: () => scrape(),
      })
      const scrape = (): void =>
        prometheus.scrape([...apis.map(({ metricsUrl }) => metricsUrl), ...replicas.urls()], {
          namespace: POD_NAMESPACE,
        })
      replicas.scaleTo(manifest.minReplicas)
      await replicas.settled()
      const areKnown = async () => {
        const totals = await Promise.all(manifest.metrics.map((metric) => totalOf(metric, prometheus)))
        return totals.every((total) => total !== undefined)
      }
      if (!(await holdsWithin(KNOWN_WITHIN_MS, areKnown))) throw new Error('Prometheus has not recorded the metrics')

      const startedAt = Date.now()
      let isOver = false
      const autoscaler = runAutoscaler(manifest, compression, { prometheus, replicas })
      const load = {
        ratePerSecond: plan.usual / (meanOf(plan) / 1_000),
        input: () => ({ ms: durationIn(plan, random), listens: false }),
        definitions: [mailWork],
      }
      const usual = enqueueSteadily(broker, { ...load, tasks: 0, more: () => !isOver })
      await sleep(beforeMs)
      const burst = { from: Date.now(), to: Date.now() + burstMs }
      const ratePerSecond = (BURST - 1) * load.ratePerSecond
      const more = await enqueueSteadily(broker, { ...load, ratePerSecond, tasks: (ratePerSecond * burstMs) / 1_000 })
      await sleep(afterMs)
      isOver = true
      await autoscaler.stop()
      const accepted = [...(await usual), ...more]
      const span = { from: startedAt / 1_000, to: Date.now() / 1_000, step: 1 }
      const [waiting = [], running = []] = await Promise.all(
        ['waiting', 'active'].map((status) =>
          prometheus.history(`max(bullpen_queue_tasks{queue="${mailWork.queue}", status="${status}"})`, span),
        ),
      )
      await untilIdle(IDLE_WITHIN_MS)
      await replicas.settled()
      const { requeues, effects, ends, ...rest } = await records(accepted)
      const waits = waitsOf(ends, effects)
      const { samples } = autoscaler
      if (plan.draws) await drawScaling({ waiting, running, samples, waits })
      const limits = { ...manifest, behavior: compressed(manifest.behavior, compression) }
      const interruptions = interruptedByRequeue(requeues, effects)
      const scaling = scalingFigures(samples, limits, burst)
      return {
        ...figuresOf({ accepted, effects, ends, ...rest, interruptions, exits: replicas.exits }),
        ...scaling,
        workersOff: Math.abs(scaling.lastWorkers - NEEDED),
        waitP50Ms: rank(
          waits.map(({ ms }) => ms),
          0.5,
        ),
        waitP99Ms: rank(
          waits.map(({ ms }) => ms),
          0.99,
        ),
      }
    },
    redis,
  )
}

/** Returns a duration of which the logarithm is uniformly distributed. */
function durationIn({ shortestMs, longestMs }: Plan, random: Random): number {
  return Math.round(shortestMs * (longestMs / shortestMs) ** random())
}

function meanOf({ shortestMs, longestMs }: Plan): number {
  return (longestMs - shortestMs) / Math.log(longestMs / shortestMs)
}
