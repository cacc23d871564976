// Tests the autoscaler's decisions against the behaviour that Kubernetes documents.
import { expect, it } from 'vitest'
import type { ScalingBehavior } from '../../../../k8s/manifest.ts'
import { createReplicaAutoscaler } from './replica-autoscaler.ts'
import { wantedReplicas } from './wanted-replicas.ts'

const SYNC_S = 15

/** Runs an autoscaler on a metric whose target is 1, so that its values are what it calls for. Returns the number after each sync. */
function replicasFor(behavior: ScalingBehavior, from: number, calledFor: readonly (number | undefined)[]) {
  const autoscaler = createReplicaAutoscaler({ minReplicas: 1, maxReplicas: 20, behavior })
  let replicas = from
  return calledFor.map((total, i) => {
    replicas = autoscaler.decide(replicas, [{ total, target: 1 }], i * SYNC_S).replicas
    return replicas
  })
}

const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value)

const FAST_UP = {
  stabilizationWindowSeconds: 0,
  policies: [
    { type: 'Percent', value: 100, periodSeconds: 15 },
    { type: 'Pods', value: 4, periodSeconds: 15 },
  ],
} as const

const down = (window: number, value: number, periodSeconds: number) =>
  ({ stabilizationWindowSeconds: window, policies: [{ type: 'Percent', value, periodSeconds }] }) as const

it.each([
  ['the number is rounded up', 2, [{ total: 91, target: 30 }], 4],
  ['the number stays if it is off by at most a tenth', 10, [{ total: 329, target: 30 }], 10],
  ['the number changes if it is off by more than a tenth', 10, [{ total: 331, target: 30 }], 12],
  ['nothing to do calls for none', 2, [{ total: 0, target: 30 }], 0],
  [
    'the largest result applies',
    2,
    [
      { total: 90, target: 30 },
      { total: 4, target: 0.8 },
    ],
    5,
  ],
  [
    'an unknown metric does not prevent an increase',
    2,
    [
      { total: 90, target: 30 },
      { total: undefined, target: 0.8 },
    ],
    3,
  ],
  [
    'an unknown metric prevents a decrease',
    4,
    [
      { total: 30, target: 30 },
      { total: undefined, target: 0.8 },
    ],
    undefined,
  ],
  ['without any known metric, the number stays', 4, [{ total: undefined, target: 30 }], undefined],
])('%s', (_, present, readings, wanted) => {
  expect(wantedReplicas(present, readings)).toBe(wanted)
})

it('the policy that allows more applies, once per period and up to the maximum', () => {
  expect(replicasFor({ scaleUp: FAST_UP }, 2, times(5, 50))).toEqual([6, 12, 20, 20, 20])
  const slow = { policies: [{ type: 'Pods', value: 1, periodSeconds: 30 }] } as const
  expect(replicasFor({ scaleUp: slow }, 2, times(6, 50))).toEqual([3, 3, 4, 4, 5, 5])
})

it('the policy that allows less applies if the manifest says so, and none if the direction is disabled', () => {
  expect(replicasFor({ scaleUp: { ...FAST_UP, selectPolicy: 'Min' } }, 2, times(3, 50))).toEqual([4, 8, 12])
  expect(replicasFor({ scaleUp: { ...FAST_UP, selectPolicy: 'Disabled' } }, 2, times(2, 50))).toEqual([2, 2])
})

it('a decrease follows the policy, to the number that the metric calls for', () => {
  expect(replicasFor({ scaleDown: down(0, 25, 15) }, 20, times(9, 2))).toEqual([15, 11, 8, 6, 4, 3, 2, 2, 2])
  expect(replicasFor({ scaleDown: down(0, 100, 15) }, 20, times(2, 0))).toEqual([1, 1])
})

it('the policy that allows a larger decrease applies, unless the manifest says otherwise', () => {
  const [percent] = down(0, 25, 15).policies
  const policies = [percent, { type: 'Pods', value: 8, periodSeconds: 15 }] as const
  expect(replicasFor({ scaleDown: { policies } }, 20, [2, 2, 2])).toEqual([12, 4, 2])
  expect(replicasFor({ scaleDown: { policies, selectPolicy: 'Min' } }, 20, [2, 2, 2])).toEqual([15, 11, 8])
})

it('the highest number of the window counts for a decrease, so that a gap in the load changes nothing', () => {
  const behavior = { scaleUp: FAST_UP, scaleDown: down(60, 100, 15) }
  expect(replicasFor(behavior, 5, [5, 2, 2, 5, 2, 2, 2, 2, 2])).toEqual([5, 5, 5, 5, 5, 5, 5, 2, 2])
})

it('the lowest number of the window counts for an increase, so that a short peak changes nothing', () => {
  const behavior = { scaleUp: { ...FAST_UP, stabilizationWindowSeconds: 30 } }
  expect(replicasFor(behavior, 2, [2, 8, 2, 8, 8, 8])).toEqual([2, 2, 2, 2, 6, 8])
})

it('a metric that cannot be read changes nothing', () => {
  expect(replicasFor({ scaleUp: FAST_UP }, 4, [undefined, 8, undefined])).toEqual([4, 8, 8])
})

it('a number outside the limits is corrected whatever the metric calls for', () => {
  expect(replicasFor({ scaleUp: FAST_UP }, 30, [30])).toEqual([20])
})
