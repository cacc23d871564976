// Tests each figure of the drill `exactness` with a handwritten ledger.
import { expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { type ExactnessLedger, exactnessFigures } from './exactness-figures.ts'

/**
 * Reads effects such as `+a1@w1` and `-a1@w1`: the first attempt of task `a` starts and ends in the worker `w1`, and `!a1@w1`
 * if it fails. The n-th effect is at n s.
 */
const effectsOf = (text: string): readonly Effect[] =>
  text.split(' ').map((word, n) => {
    const [sign = '', id = '', token = '', , ...worker] = word
    const what = sign === '+' ? 'start' : sign === '-' ? 'end' : 'failure'
    return { what, id, fencingToken: Number(token), worker: worker.join(''), at: n * 1_000, of: id === 'r' ? 1 : 0 }
  })

const completedBy = (fencingToken: number, attemptsMade = 1) => ({
  status: 'completed',
  attemptsMade,
  output: { fencingToken },
})

const ledgerOf = (text: string, changes: Partial<ExactnessLedger> = {}): ExactnessLedger => ({
  effects: effectsOf(text),
  ends: new Map(),
  interruptions: [],
  limits: { capacities: new Map([['key', 2]]), needsOf: () => [{ limit: 'key', places: 1 }] },
  disturbance: { deaths: [], freezes: [] },
  asksForRetry: (of) => of === 1,
  ...changes,
})

const PLACE = { limit: 'key', places: 1 }

const NOTHING = {
  ...{ aboveLimit: 0, ranUnlocked: 0, aboveLimitWithUnlocked: 0, limitsNotReached: 0, ranAfterEnd: 0, attemptsUsed: 0 },
  recoveryWithoutPermitsP99Ms: undefined,
}

it.each([
  ['as many tasks as allowed', '+a1@w1 +b1@w2 -a1@w1 +c1@w1 !b1@w2 +d1@w2', NOTHING],
  ['a task too many', '+a1@w1 +b1@w2 +c1@w1 -a1@w1', { ...NOTHING, aboveLimit: 1, aboveLimitWithUnlocked: 1 }],
  ['a limit that is not reached', '+a1@w1 -a1@w1 +b1@w1', { ...NOTHING, limitsNotReached: 1 }],
])('%s', (_, text, figures) => {
  expect(exactnessFigures(ledgerOf(text))).toEqual(figures)
})

it('a task that needs several places holds all of them', () => {
  const limits = { capacities: new Map([['db', 3]]), needsOf: () => [{ limit: 'db', places: 2 }] }
  expect(exactnessFigures(ledgerOf('+a1@w1 +b1@w1', { limits }))).toMatchObject({ aboveLimit: 1 })
})

it.each([
  ['once it is dead', 2, 0],
  ['not before it is dead', 3, 1],
])('the attempts of a killed worker give their places back %s', (_, effects, aboveLimit) => {
  const disturbance = { deaths: [{ worker: 'w1', effects }], freezes: [] }
  const ledger = ledgerOf('+a1@w1 +b1@w1 +c1@w2 +d1@w2', { disturbance })
  expect(exactnessFigures(ledger)).toEqual({ ...NOTHING, aboveLimit, aboveLimitWithUnlocked: aboveLimit })
})

it('what a frozen worker runs is counted apart once its locks have expired, and not before', () => {
  // Two tasks run in w1 when it is frozen, and a third one starts there when it goes on.
  const text = '+a1@w1 +b1@w1 +c1@w2 +d1@w2 +e1@w1 -a1@w1 -b1@w1 -e1@w1'
  const frozenUntil = (ms: number): ExactnessLedger => {
    const locks = new Map(['a 1', 'b 1', 'e 1'].map((attempt) => [attempt, ms]))
    return ledgerOf(text, { disturbance: { deaths: [], freezes: [{ worker: 'w1', locks }] } })
  }
  const apart = { ...NOTHING, ranUnlocked: 3, aboveLimitWithUnlocked: 3 }
  expect(exactnessFigures(frozenUntil(2_000))).toEqual(apart)
  expect(exactnessFigures(frozenUntil(2_500))).toEqual({ ...apart, aboveLimit: 1 })
})

it('the lock of another worker is not excused', () => {
  const freezes = [{ worker: 'w2', locks: new Map([['a 1', 0]]) }]
  const ledger = ledgerOf('+a1@w1 +b1@w1 +c1@w1', { disturbance: { deaths: [], freezes } })
  expect(exactnessFigures(ledger)).toMatchObject({ aboveLimit: 1, ranUnlocked: 0 })
})

it('an attempt after the one that completed its task is counted, and one before it is not', () => {
  const ends = new Map([['a', completedBy(2)]])
  expect(exactnessFigures(ledgerOf('+a1@w1 +a2@w2', { ends }))).toMatchObject({ ranAfterEnd: 0 })
  expect(exactnessFigures(ledgerOf('+a1@w1 +a2@w2 -a2@w2 +a3@w1', { ends }))).toMatchObject({ ranAfterEnd: 1 })
})

it('a requested retry does not use up an attempt, and another one does', () => {
  const ends = new Map([
    ['a', completedBy(2, 2)],
    ['r', completedBy(3, 3)],
  ])
  expect(exactnessFigures(ledgerOf('+a1@w1 +r1@w1', { ends }))).toMatchObject({ attemptsUsed: 2 })
  ends.set('a', completedBy(2)).set('r', completedBy(2, 2))
  expect(exactnessFigures(ledgerOf('+a1@w1 +r1@w1', { ends }))).toMatchObject({ attemptsUsed: 0 })
})

it('the recovery of tasks that need permits is left out', () => {
  const needsOf = (of: number) => (of === 1 ? [PLACE, { limit: 'db', places: 1 }] : [PLACE])
  const ledger = ledgerOf('+a1@w1 +r1@w1 +a2@w2 +b1@w2 +r2@w2', {
    limits: { capacities: new Map([['key', 9]]), needsOf },
    interruptions: ['a', 'r'].map((id) => ({ id, worker: 'w1', at: 1_500 })),
  })
  expect(exactnessFigures(ledger).recoveryWithoutPermitsP99Ms).toBe(500)
})
