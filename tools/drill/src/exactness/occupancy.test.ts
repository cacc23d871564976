// Tests which limits a worker's running tasks have used up.
import { expect, it } from 'vitest'
import { started } from '../ledger/handwritten-effects.fixture.ts'
import { replay } from './occupancy.ts'

const limits = { capacities: new Map([['key', 2]]), needsOf: () => [{ limit: 'key', places: 1 }] }
const UNDISTURBED = { deaths: [], freezes: [] }

it('a limit is full once all of its places are held, for each worker that holds some', () => {
  const one = [started('a', 1, 'w1', 0)]
  expect(replay(one, limits, UNDISTURBED).fullLimitsOf('w1', 0)).toEqual([])
  const two = replay([...one, started('b', 1, 'w2', 0)], limits, UNDISTURBED)
  expect(['w1', 'w2', 'w3'].map((worker) => two.fullLimitsOf(worker, 0))).toEqual([['key'], ['key'], []])
})

it('a frozen worker holds no places once its locks have expired, and a dead one holds none', () => {
  const effects = [started('a', 1, 'w1', 0), started('b', 1, 'w1', 0)]
  const locks = new Map([
    ['a 1', 5_000],
    ['b 1', 5_000],
  ])
  const frozen = replay(effects, limits, { deaths: [], freezes: [{ worker: 'w1', locks }] })
  expect([4_999, 5_000].map((now) => frozen.fullLimitsOf('w1', now))).toEqual([['key'], []])
  const dead = replay(effects, limits, { deaths: [{ worker: 'w1', effects: 2 }], freezes: [] })
  expect(dead.fullLimitsOf('w1', 0)).toEqual([])
})
