// Tests how waits are read from the ledger.
import { expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { quantileOverTime, waitsOf } from './waits.ts'

const effect = (what: Effect['what'], id: string, at: number): Effect => ({
  what,
  id,
  fencingToken: 1,
  worker: 'w1',
  at,
})
const end = (enqueuedAt: number) => ({ status: 'completed', attemptsMade: 1, enqueuedAt })

it('a wait lasts from the enqueue to the first start', () => {
  const ends = new Map([
    ['b', end(2_000)],
    ['a', end(1_000)],
    ['never-started', end(1_500)],
  ])
  const effects = [
    effect('start', 'a', 1_200),
    effect('end', 'a', 1_300),
    effect('start', 'a', 1_900),
    effect('start', 'b', 1_999),
  ]
  expect(waitsOf(ends, effects)).toEqual([
    { at: 1_000, ms: 200 },
    { at: 2_000, ms: 0 },
  ])
})

it('quantiles are those of the tasks that were enqueued in each interval', () => {
  const waits = [
    { at: 10_100, ms: 5 },
    { at: 10_200, ms: 7 },
    { at: 10_900, ms: 90 },
    { at: 13_000, ms: 1 },
  ]
  expect(quantileOverTime(waits, 0.5, 1_000)).toEqual([
    { at: 10_000, ms: 7 },
    { at: 13_000, ms: 1 },
  ])
})
