// Tests the figures of the drill `fairness` with handwritten events.
import { expect, test } from 'vitest'
import type { Move } from '../environment/queue-events.ts'
import type { Effect } from '../ledger/effects.ts'
import { type FairnessLedger, fairnessFigures } from './fairness-figures.ts'

/** Reads moves such as `+a` for the add of a task and `a` for its start. */
const movesOf = (text: string): readonly Move[] =>
  text.split(' ').map((word) => ({ what: word.startsWith('+') ? 'added' : 'active', id: word.replace('+', '') }))

const started = (id: string, at: number): Effect => ({ what: 'start', id, fencingToken: 1, worker: 'w1', at })
const end = { status: 'completed', attemptsMade: 1, enqueuedAt: 1_000 }

const tenth = '+n1 +n2 n1 +a +b a n2 b'
const whole = '+m1 +m2 +m3 +m4 m1 +c +d c m2 d m3 m4'
const ledger: FairnessLedger = {
  tenth: { noisy: ['n1', 'n2'], others: ['a', 'b'] },
  whole: { noisy: ['m1', 'm2', 'm3', 'm4'], others: ['c', 'd'] },
  moves: movesOf(`${tenth} ${whole}`),
  ends: new Map(['a', 'b', 'c', 'd', 'n1'].map((id) => [id, end])),
  effects: [started('a', 1_010), started('b', 1_020), started('c', 1_015), started('d', 1_050), started('n1', 9_000)],
}

test('the waits of the noisy key are not measured', () => {
  expect(fairnessFigures(ledger)).toEqual({
    noisyStartsMost: 1,
    unopposed: 0,
    waitP50Ms: 15,
    waitP99Ms: 50,
    waitP99TenthMs: 20,
    waitGrowthMs: 30,
  })
})

test.each([
  ['first in, first out', '+m1 +m2 +m3 +m4 m1 +c +d m2 m3 m4 c d', { noisyStartsMost: 3, unopposed: 2 }],
  ['a task that starts twice', '+m1 +m2 +m3 +m4 m1 +c +d c m2 d m3 c m4', { noisyStartsMost: 1, unopposed: 0 }],
  ['a task that does not start', '+m1 +m2 +m3 +m4 m1 +c +d c m2 m3 m4', { noisyStartsMost: undefined }],
  ['a lost add of another key', '+m1 +m2 +m3 +m4 m1 +c c m2 d m3 m4', { noisyStartsMost: undefined }],
  ['a lost add of the noisy key', '+m1 +m2 +m3 m1 +c +d c m2 d m3 m4', { unopposed: undefined }],
])('%s is reported', (_, moves, figures) => {
  expect(fairnessFigures({ ...ledger, moves: movesOf(`${tenth} ${moves}`) })).toMatchObject(figures)
})

test('a wait that does not depend on the backlog has not grown', () => {
  const swapped = { ...ledger, tenth: ledger.whole, whole: ledger.tenth }
  expect(fairnessFigures(swapped)).toMatchObject({ waitP99Ms: 20, waitP99TenthMs: 50, waitGrowthMs: 0 })
})
