// Tests each figure with a handwritten ledger.
import { describe, expect, it } from 'vitest'
import type { Effect } from '../ledger/effects.ts'
import { ended, started } from '../ledger/handwritten-effects.fixture.ts'
import type { End, Ledger } from '../ledger/ledger.ts'
import { figuresOf } from './tasks.ts'

const completed: End = { status: 'completed', attemptsMade: 1 }
const ledger = (changes: Partial<Ledger> = {}): Ledger => ({
  accepted: ['a', 'b'],
  ends: new Map([
    ['a', completed],
    ['b', completed],
  ]),
  completions: new Map([
    ['a', 1],
    ['b', 1],
  ]),
  effects: [started('a', 1, 'w1', 0), ended('a', 1, 'w1', 250), started('b', 1, 'w1', 0), ended('b', 1, 'w1', 250)],
  interruptions: [],
  exits: [],
  ...changes,
})

describe('figuresOf', () => {
  it('counts nothing in a ledger without faults', () => {
    expect(figuresOf(ledger())).toEqual({
      accepted: 2,
      lost: 0,
      duplicated: 0,
      eventsMissed: 0,
      failed: 0,
      effectsRepeated: 0,
      restarted: 0,
      attemptsUsed: 0,
      interrupted: 0,
      recoveryP99Ms: undefined,
      exitSlowestMs: undefined,
      exitsNotZero: 0,
    })
  })

  it('counts accepted tasks that have not ended as lost', () => {
    expect(figuresOf(ledger({ ends: new Map([['a', completed]]) }))).toMatchObject({ accepted: 2, lost: 1 })
  })

  it('counts tasks that completed twice as duplicated, and those without a completion event as missed', () => {
    expect(figuresOf(ledger({ completions: new Map([['a', 2]]) }))).toMatchObject({ duplicated: 1, eventsMissed: 1 })
  })

  it('counts tasks that ended in another status as failed', () => {
    const ends = new Map([
      ['a', completed],
      ['b', { status: 'dead', attemptsMade: 5 }],
    ])
    expect(figuresOf(ledger({ ends }))).toMatchObject({ failed: 1, lost: 0, attemptsUsed: 4 })
  })

  it('counts restarts and repeated effects separately', () => {
    const effects = [
      ...ledger().effects,
      started('a', 2, 'w2', 6_000),
      ended('a', 2, 'w2', 6_250),
      started('b', 2, 'w2', 6_000),
    ]
    expect(figuresOf(ledger({ effects }))).toMatchObject({ restarted: 2, effectsRepeated: 1 })
  })

  it('measures recovery to the next attempt in the same worker if that one comes first', () => {
    const interruptions = [{ id: 'a', worker: 'w1', at: 3_000 }]
    const effects: Effect[] = [2_000, 9_000].map((at, i) => ({
      what: 'start',
      id: 'a',
      fencingToken: i + 1,
      worker: 'w1',
      at,
    }))
    expect(figuresOf(ledger({ effects, interruptions })).recoveryP99Ms).toBe(6_000)
  })

  it('measures recovery from the interruption to the next attempt in another worker', () => {
    const effects = [started('a', 1, 'w1', 0), started('a', 2, 'w2', 6_100), started('a', 3, 'w3', 9_000)]
    const interruptions = [{ id: 'a', worker: 'w1', at: 100 }]
    expect(figuresOf(ledger({ effects, interruptions }))).toMatchObject({ interrupted: 1, recoveryP99Ms: 6_000 })
  })

  it('reports an infinite recovery if no attempt followed', () => {
    const interruptions = [{ id: 'a', worker: 'w1', at: 100 }]
    expect(figuresOf(ledger({ interruptions })).recoveryP99Ms).toBe(Number.POSITIVE_INFINITY)
  })

  it('reports the slowest exit, and how many were not 0', () => {
    const exits = [
      { worker: 'w1', code: 0, at: 1_000, tookMs: 300 },
      { worker: 'w2', code: null, at: 2_000, tookMs: 900 },
    ]
    expect(figuresOf(ledger({ exits }))).toMatchObject({ exitSlowestMs: 900, exitsNotZero: 1 })
  })

  it('gives the slowest signal to the figures, if any was needed', () => {
    expect(figuresOf(ledger({ signals: [3, 5, 4] })).signalSlowestMs).toBe(5)
    expect(figuresOf(ledger({ signals: [] })).signalSlowestMs).toBeUndefined()
  })
})
