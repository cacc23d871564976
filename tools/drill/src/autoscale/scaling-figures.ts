// Computes the figures of autoscaling from what the autoscaler decided at each sync.
import type { Figures } from '../figures/figures.ts'
import type { ScalingLimits } from './replica-autoscaler.ts'

export interface ScalingSample {
  /** Unix time in ms. */
  readonly at: number
  /** What the metrics called for. */
  readonly wanted: number
  /** The number of workers that were asked for, before and after the decision. */
  readonly from: number
  readonly to: number
  readonly running: number
  readonly draining: number
}

export interface Burst {
  /** Unix times in ms. */
  readonly from: number
  readonly to: number
}

type ScalingFigures = Required<
  Pick<
    Figures,
    'mostWorkers' | 'lastWorkers' | 'directionChanges' | 'stepsBeyondLimits' | 'scaledUpMs' | 'scaledDownMs'
  >
>

export function scalingFigures(samples: readonly ScalingSample[], limits: ScalingLimits, burst: Burst): ScalingFigures {
  const steps = samples.filter(({ from, to }) => from !== to)
  const directions = steps.map(({ from, to }) => Math.sign(to - from))
  const firstUp = steps.find(({ at, from, to }) => at >= burst.from && to > from)
  const lastDown = steps.findLast(({ at, from, to }) => at >= burst.to && to < from)
  return {
    mostWorkers: Math.max(...samples.map(({ to }) => to)),
    lastWorkers: samples.at(-1)?.to ?? 0,
    directionChanges: directions.filter((each, i) => i > 0 && each !== directions[i - 1]).length,
    stepsBeyondLimits: steps.filter((step) => !isWithin(limits, step, samples)).length,
    scaledUpMs: firstUp && firstUp.at - burst.from,
    scaledDownMs: lastDown && lastDown.at - burst.to,
  }
}

/**
 * Returns whether a step leads to a number that the manifest allows. The number may change by what the policy that allows most
 * says, counted from the number at the beginning of the policy's period.
 */
function isWithin(
  { minReplicas, maxReplicas, behavior }: ScalingLimits,
  { at, from, to }: ScalingSample,
  samples: readonly ScalingSample[],
): boolean {
  if (to < minReplicas || to > maxReplicas) return false
  const { policies = [] } = (to > from ? behavior.scaleUp : behavior.scaleDown) ?? {}
  const changes = policies.map(({ type, value, periodSeconds }) => {
    const before = samples.findLast((each) => each.at <= at - periodSeconds * 1_000)?.to ?? samples[0]?.from ?? from
    return { before, by: type === 'Pods' ? value : (before * value) / 100 }
  })
  return to > from
    ? changes.some(({ before, by }) => to <= Math.ceil(before + by))
    : changes.some(({ before, by }) => to >= Math.trunc(before - by))
}
