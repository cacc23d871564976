// Compares the decisions of the steps in Redis with those of the engine, for random attempts of one definition.
import { randomUUID } from 'node:crypto'
import type { RetryBudget, TaskId } from '@bullpen/contract'
import {
  type AttemptResult,
  admitRetry,
  type BudgetDecision,
  type BudgetUse,
  countAttempt,
  endRetry,
  unusedBudget,
} from '@bullpen/engine/internal'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { DELAYED_SCORE_STEP } from '../internals/status/places.ts'
import { defineScript } from '../scripts/define-script.fixture.ts'
import { runScript } from '../scripts/script.ts'
import { luaInclude } from '../store/scripts.ts'
import { type AttemptCounts, createAttemptCounts } from './attempt-counts.ts'

const TASK = 'model.task'
const START = 1_700_000_000_000

/** Runs the steps on two sets that stand for the queue's. Returns when the retry starts, or how many others now start earlier. */
const step = defineScript({
  name: 'test-retry-budget',
  kind: 'adds',
  keys: ['base'],
  args: ['budget', 'at', 'does', 'id', 'backoffEndsAt'],
  lua: `
if budget == '' then return end
${luaInclude('retry-budget')}
local result
if does == 'fail' then
  result = admit_retry(budget, tonumber(at), id, tonumber(backoffEndsAt))
  redis.call('ZADD', base .. 'retrying', result * ${DELAYED_SCORE_STEP}, id)
else
  redis.call('ZREM', base .. 'retrying', id)
  result = end_retry(budget, tonumber(at), does == 'completed')
end
return result`,
  answer: (reply: unknown): number => Number(reply),
})

function resultOf(id: string, attempt: number, verdict: 'completed' | 'retrying' | 'dead', budget: RetryBudget) {
  const fields = { queue: 'q', task: TASK, id: id as TaskId, kind: 'short', fencingToken: attempt, attempt } as const
  const end = { correlationId: undefined, reason: undefined, code: undefined, error: undefined, durationMs: 0 } as const
  const decided = { completed: { output: undefined }, retrying: { delayMs: 0 }, dead: {} }[verdict]
  return {
    event: { ...fields, ...end, event: 'attempt.ended', state: 'DONE_ERROR', verdict, delayMs: undefined },
    verdict: { kind: verdict, ...decided },
    record: {
      ...{ fencingToken: attempt, attempt, counted: true, state: 'DONE_ERROR', worker: 'test' },
      ...{ startedAt: 1, endedAt: 1 },
    },
    error: undefined,
    budget,
  } as AttemptResult
}

const steps = fc.array(
  fc.record({
    /** A step may be earlier than the one before it, because the clocks of workers differ. */
    afterMs: fc.integer({ min: -20, max: 2_500 }),
    does: fc.constantFrom('succeed', 'fail', 'fail', 'fail', 'completed', 'dead', 'cancel'),
    backoffMs: fc.integer({ min: 1, max: 4_000 }),
    worker: fc.nat(1),
  }),
  { maxLength: 60, size: 'max' },
)

const budgets = fc.record({
  ratio: fc.constantFrom(0, 0.1, 0.2, 0.5, 1),
  minRetriesPerSecond: fc.constantFrom(0.05, 0.3, 1, 10),
})

describe('the retry budget in Redis', () => {
  it('decides as the engine does', async () => {
    const redis = new Redis(inject('redisUrl'))
    onTestFinished(() => redis.disconnect())
    const property = fc.asyncProperty(budgets, steps, async (budget, program) => {
      const base = `{t-${randomUUID().slice(0, 12)}.q}:q:`
      let at = START
      // Redis begins with all tokens, whenever its first step is.
      let use: BudgetUse = unusedBudget(0, budget)
      const due = new Map<string, number>()
      const isHeld = (held: { id: string; startsAt: number }) => due.get(held.id) === held.startsAt
      const workers: readonly AttemptCounts[] = [0, 1].map(() => createAttemptCounts(() => at))
      for (const [i, { afterMs, does, backoffMs, worker }] of program.entries()) {
        at += afterMs
        const counts = workers[worker] as AttemptCounts
        // Some tasks fail more than once.
        const id = `task-${i % 15}`
        if (does === 'cancel') {
          due.delete(id)
          await redis.zrem(`${base}retrying`, id)
          continue
        }
        if (does === 'succeed') {
          use = countAttempt(use, at)
          expect(counts.count(resultOf(id, 1, 'completed', budget))).toBe('')
        }
        const verdict = does === 'fail' ? 'retrying' : does === 'dead' ? 'dead' : 'completed'
        const packed = counts.count(resultOf(id, 2, verdict, budget))
        use = countAttempt(use, at)
        if (verdict !== 'retrying') due.delete(id)
        const backoffEndsAt = at + backoffMs
        const failed = { id, backoffEndsAt, totalTimeoutAt: 'none' } as const
        const decision: BudgetDecision & { readonly startsAt?: number } =
          verdict === 'retrying'
            ? admitRetry(use, failed, at, budget, isHeld)
            : endRetry(use, verdict, at, budget, isHeld)
        use = decision.use
        const moved = decision.moved.filter(({ id: of, startsAt }) => due.get(of) !== startsAt)
        for (const { id: of, startsAt } of decision.moved) due.set(of, startsAt)
        if (decision.startsAt !== undefined) due.set(id, decision.startsAt)
        const args = { budget: packed, at, does: does === 'succeed' ? 'completed' : does, id, backoffEndsAt }
        const answer = await runScript(redis, step, { base }, args)
        expect(answer).toBe(decision.startsAt ?? moved.length)
        const stored: string[] = await redis.zrange(`${base}retrying`, 0, '-1', 'WITHSCORES')
        const storedDue = stored.flatMap((of, j) =>
          j % 2 === 0 ? [[of, Number(stored[j + 1]) / DELAYED_SCORE_STEP]] : [],
        )
        expect(new Map(storedDue as [string, number][])).toEqual(new Map([...due].toSorted()))
      }
    })
    await fc.assert(property, {
      numRuns: 60,
      examples: [
        [
          { ratio: 0, minRetriesPerSecond: 0.05 },
          [
            { afterMs: -1, does: 'fail', backoffMs: 1, worker: 0 },
            { afterMs: 1, does: 'fail', backoffMs: 1, worker: 0 },
          ],
        ],
      ],
    })
  })

  it('notes a retry that now starts earlier for the cancel rules, because it may have moved past their scan', async () => {
    const redis = new Redis(inject('redisUrl'))
    onTestFinished(() => redis.disconnect())
    const base = `{t-${randomUUID().slice(0, 12)}.q}:q:`
    const at = Date.now()
    const budget = { ratio: 0, minRetriesPerSecond: 0.1 }
    const counts = createAttemptCounts(() => at)
    await redis.hset(`${base}cancel-rules`, 'r', '{}')
    for (const id of ['a', 'b']) {
      const packed = counts.count(resultOf(id, 1, 'retrying', budget))
      await runScript(redis, step, { base }, { budget: packed, at, does: 'fail', id, backoffEndsAt: at + 1 })
    }
    const packed = counts.count(resultOf('a', 2, 'completed', budget))
    await runScript(redis, step, { base }, { budget: packed, at, does: 'completed', id: 'a', backoffEndsAt: at })
    expect(await redis.smembers(`${base}cancel-returned`)).toEqual(['b'])
  })

  it('expires when none of it is used', async () => {
    const redis = new Redis(inject('redisUrl'))
    onTestFinished(() => redis.disconnect())
    const base = `{t-${randomUUID().slice(0, 12)}.q}:q:`
    const at = Date.now()
    const budget = { ratio: 0, minRetriesPerSecond: 0.1 }
    const counts = createAttemptCounts(() => at)
    for (const id of ['a', 'b', 'c']) {
      const packed = counts.count(resultOf(id, 1, 'retrying', budget))
      await runScript(redis, step, { base }, { budget: packed, at, does: 'fail', id, backoffEndsAt: at + 1 })
    }
    // The last slot begins after 20 s.
    for (const key of ['retry-budget', 'held-retries']) {
      const life = await redis.pttl(`${base}${key}:${TASK}`)
      expect(life).toBeGreaterThan(30_000)
      expect(life).toBeLessThanOrEqual(40_000)
    }
  })
})

describe('the counts of a worker', () => {
  const budget = { ratio: 0.2, minRetriesPerSecond: 10 }

  it('are sent with the next attempt that is retried, by age, and only once', () => {
    let now = 5_000
    const counts = createAttemptCounts(() => now)
    const end = (verdict: 'completed' | 'retrying' | 'dead', attempt = 1) =>
      counts.count(resultOf('a', attempt, verdict, budget))
    expect([end('completed'), end('completed'), end('dead')]).toEqual(['', '', ''])
    now += 2_000
    expect(end('retrying')).toBe(`${TASK} 0.2 100 none 2:3 0:1`)
    expect(end('completed', 2)).toBe(`${TASK} 0.2 100 none 0:1`)
  })

  it('are forgotten after ten seconds', () => {
    let now = 5_000
    const counts = createAttemptCounts(() => now)
    counts.count(resultOf('a', 1, 'completed', budget))
    now += 10_000
    expect(counts.count(resultOf('a', 1, 'retrying', budget))).toBe(`${TASK} 0.2 100 none 0:1`)
  })

  it('are not sent for a definition without a budget', () => {
    const counts = createAttemptCounts(() => 0)
    expect(counts.count({ ...resultOf('a', 1, 'retrying', budget), budget: undefined })).toBe('')
  })
})
