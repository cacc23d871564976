// Tests the figures of autoscaling.
import { expect, it } from 'vitest'
import { type ScalingSample, scalingFigures } from './scaling-figures.ts'

const limits = {
  minReplicas: 2,
  maxReplicas: 20,
  behavior: {
    scaleUp: {
      policies: [
        { type: 'Percent', value: 100, periodSeconds: 15 },
        { type: 'Pods', value: 4, periodSeconds: 15 },
      ],
    },
    scaleDown: { policies: [{ type: 'Percent', value: 25, periodSeconds: 60 }] },
  },
} as const
const burst = { from: 60_000, to: 90_000 }

/** The number of workers after each sync, with a sync every 15 s. */
function figuresOf(counts: readonly number[]) {
  const samples = counts.map((to, i): ScalingSample => {
    return { at: i * 15_000, wanted: to, from: counts[i - 1] ?? to, to, running: to, draining: 0 }
  })
  return scalingFigures(samples, limits, burst)
}

it('a burst causes one change of direction, and its steps are timed', () => {
  expect(figuresOf([3, 3, 3, 3, 3, 7, 14, 14, 14, 14, 11, 11, 11, 11, 9, 9])).toEqual({
    mostWorkers: 14,
    lastWorkers: 9,
    directionChanges: 1,
    stepsBeyondLimits: 0,
    scaledUpMs: 15_000,
    scaledDownMs: 120_000,
  })
})

it('an autoscaler that removes workers and adds them again has more changes of direction', () => {
  expect(figuresOf([3, 3, 3, 3, 3, 6, 6, 6, 5, 6, 6, 6, 5]).directionChanges).toBe(3)
})

it('steps in the same direction are no change of direction, whatever is between them', () => {
  expect(figuresOf([2, 4, 4, 6, 6, 6, 8]).directionChanges).toBe(0)
})

it.each([
  ['more than twice as many and more than four more', [5, 11], 1],
  ['twice as many', [5, 10], 0],
  ['four more', [2, 6], 0],
  ['fewer than a quarter less within a minute', [8, 6, 5], 1],
  ['a quarter less per minute', [8, 6, 6, 6, 6, 4], 0],
  ['more than the maximum', [12, 21], 1],
  ['fewer than the minimum', [2, 1], 1],
])('a step to %s is judged by the limits', (_, counts, beyond) => {
  expect(figuresOf(counts).stepsBeyondLimits).toBe(beyond)
})

it('a burst that changes nothing has no times', () => {
  expect(figuresOf([3, 3, 3, 3, 3, 3, 3])).toMatchObject({ scaledUpMs: undefined, scaledDownMs: undefined })
})
