// Tests which attempts of a handwritten ledger were interrupted, signalled or repeated.
import { describe, expect, it } from 'vitest'
import { interruptedBy, interruptedByRequeue, restartsOf, runningWithin, signalsAfter } from './attempts.ts'
import type { Effect } from './effects.ts'
import { ended, started } from './handwritten-effects.fixture.ts'

it('a task whose first start in the ledger is its second attempt has no restart', () => {
  expect(restartsOf([started('a', 2, 'w2', 500), ended('a', 2, 'w2', 750)])).toBe(0)
  expect(restartsOf([started('a', 1, 'w1', 0), started('a', 2, 'w2', 500)])).toBe(1)
})

it('runningWithin finds attempts that started before or in the span and did not end before it', () => {
  const effects = [
    started('a', 1, 'w1', 0),
    started('b', 1, 'w1', 0),
    ended('b', 1, 'w1', 90),
    started('c', 1, 'w1', 150),
    started('d', 1, 'w2', 150),
    started('e', 1, 'w1', 250),
  ]
  expect([...runningWithin(effects, 'w1', 100, 200)]).toEqual(['a', 'c'])
})

describe('interruptedBy', () => {
  it('returns the attempts that the worker did not end', () => {
    const effects = [
      started('a', 1, 'w1', 0),
      ended('a', 1, 'w1', 250),
      started('b', 2, 'w1', 300),
      started('c', 1, 'w2', 300),
    ]
    expect(interruptedBy(effects, 'w1', 400)).toEqual([{ id: 'b', worker: 'w1', at: 400 }])
  })

  it('leaves out attempts that were signalled before, which write no end', () => {
    const signalled: Effect = { what: 'signal', id: 'a', fencingToken: 1, worker: 'w1', at: 300 }
    expect(interruptedBy([started('a', 1, 'w1', 0), signalled], 'w1', 400)).toEqual([])
  })
})

describe('signalsAfter', () => {
  const open = started('a', 1, 'w1', 50)
  const signalled: Effect = { what: 'signal', id: 'a', fencingToken: 1, worker: 'w1', at: 4_600 }

  it('counts from the cut, for the attempts that ran then', () => {
    const effects = [
      open,
      started('b', 1, 'w2', 60),
      signalled,
      ended('a', 1, 'w1', 9_000),
      started('c', 1, 'w1', 9_000),
    ]
    expect(signalsAfter(effects, 'w1', 100, 5_000)).toEqual([4_500])
  })

  it('is infinite for an attempt that ran on without a signal', () => {
    expect(signalsAfter([open, ended('a', 1, 'w1', 5_101)], 'w1', 100, 5_000)).toEqual([Number.POSITIVE_INFINITY])
    expect(signalsAfter([open], 'w1', 100, 5_000)).toEqual([Number.POSITIVE_INFINITY])
  })

  it('leaves out an attempt that ended by itself', () => {
    expect(signalsAfter([open, ended('a', 1, 'w1', 5_100)], 'w1', 100, 5_000)).toEqual([])
  })
})

describe('interruptedByRequeue', () => {
  it('names the worker that had started the attempt', () => {
    const effects = [started('a', 1, 'w1', 0), started('a', 2, 'w2', 520)]
    expect(interruptedByRequeue([{ id: 'a', at: 500 }], effects)).toEqual([{ id: 'a', worker: 'w1', at: 500 }])
  })

  it('names the attempt before a start in the same millisecond', () => {
    const effects = [started('a', 1, 'w1', 100), started('a', 2, 'w2', 500)]
    expect(interruptedByRequeue([{ id: 'a', at: 500 }], effects)).toEqual([{ id: 'a', worker: 'w1', at: 500 }])
  })

  it('leaves out a task that no handler had started', () => {
    expect(interruptedByRequeue([{ id: 'a', at: 500 }], [])).toEqual([])
  })
})
