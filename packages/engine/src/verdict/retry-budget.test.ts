// Tests retry budgets: which retries are held, when they are released, and that there are never more than the budget allows.
import type { RetryBudget } from '@bullpen/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  admitRetry,
  type BudgetUse,
  countAttempt,
  endRetry,
  MAX_RELEASED,
  type MovedRetry,
  unusedBudget,
} from './retry-budget.ts'

const START = 1_700_000_000_000
const BACKOFF_MS = 100

/** Runs attempts one after another against one budget. Times are in ms from the start of the test. */
function trial(budget: RetryBudget) {
  let use: BudgetUse = unusedBudget(START, budget)
  const dueAt = new Map<string, number>()
  const isHeld = ({ id, startsAt }: MovedRetry) => dueAt.get(id) === startsAt - START
  const carryOut = ({ use: next, moved }: { readonly use: BudgetUse; readonly moved: readonly MovedRetry[] }) => {
    use = next
    for (const { id, startsAt } of moved) dueAt.set(id, startsAt - START)
    return moved.length
  }
  return {
    dueAt,
    held: () => use.held.length,
    succeed(at: number, times: number) {
      for (let i = 0; i < times; i++) use = countAttempt(use, START + at)
    },
    /** Returns how long the retry is held beyond its backoff. */
    fail(at: number, id: string, totalTimeoutAt: number | 'none' = 'none', backoffMs = BACKOFF_MS) {
      const now = START + at
      use = countAttempt(use, now)
      const admitted = admitRetry(use, { id, backoffEndsAt: now + backoffMs, totalTimeoutAt }, now, budget, isHeld)
      carryOut(admitted)
      dueAt.set(id, admitted.startsAt - START)
      return admitted.startsAt - now - backoffMs
    },
    /** Returns how many retries the end of this one releases. */
    endRetry(at: number, id: string, end: 'completed' | 'dead' = 'completed') {
      dueAt.delete(id)
      use = countAttempt(use, START + at)
      return carryOut(endRetry(use, end, START + at, budget, isHeld))
    },
  }
}

describe('a retry budget', () => {
  it('does not hold the retries of a quiet definition', () => {
    const { fail } = trial({ ratio: 0.2, minRetriesPerSecond: 1 })
    const waits = Array.from({ length: 30 }, (_, i) => fail(i * 1_000, `t${i}`))
    expect(waits).toEqual(Array(30).fill(0))
  })

  it('saves 10 s of the minimum rate, and then holds each retry one interval longer than the one before', () => {
    const { fail } = trial({ ratio: 0, minRetriesPerSecond: 2 })
    const waits = Array.from({ length: 23 }, (_, i) => fail(0, `t${i}`))
    expect(waits).toEqual([...Array(20).fill(0), 400, 900, 1_400])
  })

  it('allows one retry for every five attempts of the last 10 s in addition', () => {
    const { fail, succeed } = trial({ ratio: 0.2, minRetriesPerSecond: 0.1 })
    succeed(0, 45)
    const waits = Array.from({ length: 14 }, (_, i) => fail(0, `t${i}`) > 0)
    // The failed attempts count, too. The ratio allows 11 retries for up to 59 attempts, and the minimum rate one.
    expect(waits).toEqual([...Array(12).fill(false), true, true])
    const later = trial({ ratio: 0.2, minRetriesPerSecond: 0.1 })
    later.succeed(0, 45)
    expect([later.fail(10_000, 'a') > 0, later.fail(10_000, 'b') > 0]).toEqual([false, true])
  })

  it('lets further retries wait behind those that are held, so that no task is retried while others wait longer', () => {
    const { fail, succeed, dueAt } = trial({ ratio: 0.2, minRetriesPerSecond: 0.1 })
    for (const id of ['a', 'b', 'c']) fail(0, id)
    succeed(1_000, 6)
    fail(1_000, 'd')
    // With ten attempts, the ratio allows two retries: those of b and c, which are released.
    expect([dueAt.get('b'), dueAt.get('c')]).toEqual([1_000, 1_000])
    // The token for d has been growing since the first failure.
    expect(dueAt.get('d')).toBe(10_000)
  })

  it('releases held retries when a retry succeeds, but not when it is dead', () => {
    const { fail, endRetry, held } = trial({ ratio: 0, minRetriesPerSecond: 0.1 })
    for (const id of ['a', 'b', 'c']) fail(0, id)
    expect(held()).toBe(2)
    expect(endRetry(200, 'a', 'dead')).toBe(0)
    expect(endRetry(300, 'a')).toBe(1)
    expect(held()).toBe(1)
  })

  it('lets held retries move up when the release of others has left a gap', () => {
    const { fail, succeed, endRetry, dueAt, held } = trial({ ratio: 0.2, minRetriesPerSecond: 1 })
    for (let i = 0; i < 60; i++) fail(0, `t${i}`)
    const before = held()
    succeed(1_000, 50)
    endRetry(1_000, 't0', 'dead')
    expect(held()).toBeLessThanOrEqual(before - 10)
    const slots = [...dueAt.values()].filter((at) => at > 1_000).toSorted((a, b) => a - b)
    expect(slots.slice(0, 3)).toEqual([2_000, 3_000, 4_000])
  })

  it('adds no token twice if the clocks of two workers differ', () => {
    const { fail, held } = trial({ ratio: 0, minRetriesPerSecond: 1 })
    for (let i = 0; i < 10; i++) fail(10_000, `t${i}`)
    for (let i = 0; i < 20; i++) fail(10_000 - (i % 2) * 900, `later${i}`)
    expect(held()).toBe(20)
  })

  it('never starts a released retry before its backoff ends', () => {
    const { fail, endRetry, dueAt } = trial({ ratio: 0, minRetriesPerSecond: 0.1 })
    fail(0, 'a')
    fail(0, 'b', 'none', 5_000)
    endRetry(1_000, 'a')
    expect(dueAt.get('b')).toBe(5_000)
  })

  it('holds no retry beyond the total timeout of its task', () => {
    const { fail } = trial({ ratio: 0, minRetriesPerSecond: 0.1 })
    fail(0, 'a')
    expect(fail(0, 'b', START + 3_000)).toBe(3_000 - BACKOFF_MS)
  })

  it('releases at most a hundred retries at once', () => {
    const { fail, succeed, endRetry, held } = trial({ ratio: 1, minRetriesPerSecond: 0.1 })
    fail(0, 'a')
    for (let i = 0; i < 300; i++) fail(0, `t${i}`, 'none', 60_000)
    const before = held()
    succeed(1_000, 1_000)
    expect(endRetry(1_000, 'a')).toBe(Math.min(before, MAX_RELEASED))
  })

  it('skips tasks that no longer wait, such as cancelled ones', () => {
    const { fail, endRetry, dueAt } = trial({ ratio: 0, minRetriesPerSecond: 0.1 })
    for (const id of ['a', 'b', 'c']) fail(0, id)
    dueAt.delete('b')
    expect(endRetry(200, 'a')).toBe(1)
    expect(dueAt.get('c')).toBe(200)
  })

  it('never lets more retries start than the ratio, the minimum rate and the successful retries allow', () => {
    const step = fc.record({
      afterMs: fc.integer({ min: 0, max: 3_000 }),
      does: fc.constantFrom('succeed', 'fail', 'fail', 'fail', 'end', 'die'),
      times: fc.integer({ min: 1, max: 12 }),
    })
    const budgets = fc.record({
      ratio: fc.double({ min: 0, max: 1, noNaN: true }),
      minRetriesPerSecond: fc.double({ min: 0.05, max: 20, noNaN: true }),
    })
    fc.assert(
      fc.property(budgets, fc.array(step, { maxLength: 60 }), (budget, steps) => {
        const { ratio, minRetriesPerSecond: rate } = budget
        const world = trial(budget)
        const started: number[] = []
        let [at, attempts, successes, made] = [0, 0, 0, 0]
        const startDue = (): readonly string[] => {
          const due = [...world.dueAt].filter(([, dueAt]) => dueAt <= at)
          return due.map(([id]) => id)
        }
        const running: string[] = []
        for (const { afterMs, does, times } of steps) {
          at += afterMs
          for (const id of startDue()) {
            world.dueAt.delete(id)
            running.push(id)
            started.push(at)
          }
          for (let i = 0; i < times; i++) {
            const retried = running.shift()
            if (does === 'succeed') world.succeed(at, 1)
            else if (does === 'fail') world.fail(at, retried ?? `t${made++}`)
            else if (retried !== undefined) world.endRetry(at, retried, does === 'end' ? 'completed' : 'dead')
            if (retried !== undefined && does === 'succeed') running.unshift(retried)
            if (does === 'succeed' || does === 'fail' || retried !== undefined) attempts++
            if (does === 'end' && retried !== undefined) successes++
          }
          const saved = Math.max(1, 10 * rate)
          const allowed = ratio * attempts + saved + (rate * at) / 1_000 + successes + 1
          expect(started.length).toBeLessThanOrEqual(allowed)
        }
      }),
    )
  })

  it('releases every held retry in the end, even if no other attempt ends', () => {
    const { fail, dueAt } = trial({ ratio: 0, minRetriesPerSecond: 5 })
    for (let i = 0; i < 200; i++) fail(0, `t${i}`)
    expect(Math.max(...dueAt.values())).toBe(30_000)
  })
})
