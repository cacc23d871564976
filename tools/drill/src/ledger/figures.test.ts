// Tests each figure with a handwritten ledger.
import { describe, expect, it } from 'vitest'
import type { Effect } from './effects.ts'
import {
  type End,
  figuresOf,
  interruptedBy,
  interruptedByRequeue,
  type Ledger,
  p99,
  rank,
  restartsOf,
  runningWithin,
  signalsAfter,
} from './figures.ts'

const completed: End = { status: 'completed', attemptsMade: 1 }
const started = (id: string, fencingToken: number, worker: string, at: number): Effect => ({
  what: 'start',
  id,
  fencingToken,
  worker,
  at,
})
const ended = (id: string, fencingToken: number, worker: string, at: number): Effect => ({
  what: 'end',
  id,
  fencingToken,
  worker,
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
})

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

  it('gives the slowest signal to the figures, if any was needed', () => {
    expect(figuresOf(ledger({ signals: [3, 5, 4] })).signalSlowestMs).toBe(5)
    expect(figuresOf(ledger({ signals: [] })).signalSlowestMs).toBeUndefined()
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

it('rank returns the smallest value that a share of the values does not exceed', () => {
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
