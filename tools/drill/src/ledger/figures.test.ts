// What a ledger says: each figure from a ledger that was written by hand.
import { describe, expect, it } from 'vitest'
import type { Effect } from './effects.ts'
import {
  cutShort,
  type End,
  figuresOf,
  type Ledger,
  p99,
  rank,
  requeued,
  restartsIn,
  runningWithin,
  signalsAfter,
} from './figures.ts'

const completed: End = { status: 'completed', attemptsMade: 1 }
const started = (id: string, start: number, process: string, at: number): Effect => ({
  what: 'start',
  id,
  start,
  process,
  at,
})
const ended = (id: string, start: number, process: string, at: number): Effect => ({
  what: 'end',
  id,
  start,
  process,
  at,
})

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

describe('figures', () => {
  it('of a ledger without trouble are all zero', () => {
    expect(figuresOf(ledger())).toEqual({
      accepted: 2,
      lost: 0,
      duplicated: 0,
      unseen: 0,
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

  it('count as lost what was accepted and has no end', () => {
    expect(figuresOf(ledger({ ends: new Map([['a', completed]]) }))).toMatchObject({ accepted: 2, lost: 1 })
  })

  it('count as duplicated what was recorded as completed twice, and as unseen what was not', () => {
    expect(figuresOf(ledger({ completions: new Map([['a', 2]]) }))).toMatchObject({ duplicated: 1, unseen: 1 })
  })

  it('count as failed what ended otherwise', () => {
    const ends = new Map([
      ['a', completed],
      ['b', { status: 'dead', attemptsMade: 5 }],
    ])
    expect(figuresOf(ledger({ ends }))).toMatchObject({ failed: 1, lost: 0, attemptsUsed: 4 })
  })

  it('count starts beyond the first, and apart from them effects that ended twice', () => {
    const effects = [
      ...ledger().effects,
      started('a', 2, 'w2', 6_000),
      ended('a', 2, 'w2', 6_250),
      started('b', 2, 'w2', 6_000),
    ]
    expect(figuresOf(ledger({ effects }))).toMatchObject({ restarted: 2, effectsRepeated: 1 })
  })

  it('measure recovery from the interruption to the next start in another process', () => {
    const effects = [started('a', 1, 'w1', 0), started('a', 2, 'w2', 6_100), started('a', 3, 'w3', 9_000)]
    const interruptions = [{ id: 'a', process: 'w1', at: 100 }]
    expect(figuresOf(ledger({ effects, interruptions }))).toMatchObject({ interrupted: 1, recoveryP99Ms: 6_000 })
  })

  it('call a recovery that did not come infinite', () => {
    const interruptions = [{ id: 'a', process: 'w1', at: 100 }]
    expect(figuresOf(ledger({ interruptions })).recoveryP99Ms).toBe(Number.POSITIVE_INFINITY)
  })

  it('tell the slowest exit, and how many were not 0', () => {
    const exits = [
      { process: 'w1', code: 0, at: 1_000, tookMs: 300 },
      { process: 'w2', code: null, at: 2_000, tookMs: 900 },
    ]
    expect(figuresOf(ledger({ exits }))).toMatchObject({ exitSlowestMs: 900, exitsNotZero: 1 })
  })
})

it('counts no restart for a task whose first start in the ledger is its second for the system', () => {
  expect(restartsIn([started('a', 2, 'w2', 500), ended('a', 2, 'w2', 750)])).toBe(0)
  expect(restartsIn([started('a', 1, 'w1', 0), started('a', 2, 'w2', 500)])).toBe(1)
})

it('finds what a process ran within a span: begun before or in it, and not ended before', () => {
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

describe('what a death cuts short', () => {
  it('are the starts of that process that it did not end', () => {
    const effects = [
      started('a', 1, 'w1', 0),
      ended('a', 1, 'w1', 250),
      started('b', 2, 'w1', 300),
      started('c', 1, 'w2', 300),
    ]
    expect(cutShort(effects, 'w1', 400)).toEqual([{ id: 'b', process: 'w1', at: 400 }])
  })

  it('are not those that were told to end before, which leave no end behind', () => {
    const told: Effect = { what: 'signal', id: 'a', start: 1, process: 'w1', at: 300 }
    expect(cutShort([started('a', 1, 'w1', 0), told], 'w1', 400)).toEqual([])
  })
})

describe('the signals after a cut', () => {
  const open = started('a', 1, 'w1', 50)
  const signalled: Effect = { what: 'signal', id: 'a', start: 1, process: 'w1', at: 4_600 }

  it('are counted from the cut, of the attempts that were open then', () => {
    const effects = [
      open,
      started('b', 1, 'w2', 60),
      signalled,
      ended('a', 1, 'w1', 9_000),
      started('c', 1, 'w1', 9_000),
    ]
    expect(signalsAfter(effects, 'w1', 100, 5_000)).toEqual([4_500])
  })

  it('never came for an attempt that went on without', () => {
    expect(signalsAfter([open, ended('a', 1, 'w1', 5_101)], 'w1', 100, 5_000)).toEqual([Number.POSITIVE_INFINITY])
    expect(signalsAfter([open], 'w1', 100, 5_000)).toEqual([Number.POSITIVE_INFINITY])
  })

  it('were not needed where the attempt ended by itself', () => {
    expect(signalsAfter([open, ended('a', 1, 'w1', 5_100)], 'w1', 100, 5_000)).toEqual([])
  })

  it('tell the slowest, where any was needed', () => {
    expect(figuresOf(ledger({ signals: [3, 5, 4] })).signalSlowestMs).toBe(5)
    expect(figuresOf(ledger({ signals: [] })).signalSlowestMs).toBeUndefined()
  })
})

describe('what was handed back', () => {
  it('was with the process that had started it last before', () => {
    const effects = [started('a', 1, 'w1', 0), started('a', 2, 'w2', 520)]
    expect(requeued([{ id: 'a', at: 500 }], effects)).toEqual([{ id: 'a', process: 'w1', at: 500 }])
  })

  it('is of the start before, though the next one comes in the same millisecond', () => {
    const effects = [started('a', 1, 'w1', 100), started('a', 2, 'w2', 500)]
    expect(requeued([{ id: 'a', at: 500 }], effects)).toEqual([{ id: 'a', process: 'w1', at: 500 }])
  })

  it('is not a task that no handler had', () => {
    expect(requeued([{ id: 'a', at: 500 }], [])).toEqual([])
  })
})

it('gives the smallest value that a part of all do not exceed', () => {
  expect(rank([3, 1, 2, 4], 0.5)).toBe(2)
  expect(rank([], 0.5)).toBeUndefined()
})

describe('p99', () => {
  it.each([
    [[], undefined],
    [[7], 7],
    [Array.from({ length: 100 }, (_, i) => 100 - i), 99],
    [Array.from({ length: 101 }, (_, i) => i + 1), 100],
    [Array.from({ length: 1_000 }, (_, i) => i + 1), 990],
  ])('of %j is %s', (values, expected) => {
    expect(p99(values)).toBe(expected)
  })
})
