// What the end of an attempt shows about services is counted once, in the script that ends the attempt, on a real Redis.
import { DEFAULT_BREAKER } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { decodeBreaker, defineBreakers } from '../breakers/stored-breaker.ts'
import { stage } from '../internals/turns/stage.fixture.ts'
import { lockTask } from '../locks/stored-lock.fixture.ts'
import { runnerOn } from '../scripts/script.ts'

async function stageWithCalls(minimumCalls: number) {
  const opened = await stage()
  const { redis, keys, add, start, end } = opened
  const settings = { ...DEFAULT_BREAKER, minimumCalls }
  await defineBreakers(runnerOn(redis), keys, { smtp: settings }, { replaces: true })
  const call = { service: 'smtp', failed: true, slow: false, settings }
  type Verdict = Parameters<typeof end>[1]
  return {
    ...opened,
    async startOne(): Promise<void> {
      await add('a', { services: ['smtp'], maxAttempts: 3 })
      await start(1)
    },
    fail: (verdict: ReturnType<Verdict>, { fetches = false, before = (_: string): unknown => undefined } = {}) =>
      end(
        fetches ? 0 : 1,
        () => verdict,
        async () => undefined,
        before,
        { calls: [call] },
      ),
    stored: async () => decodeBreaker((await redis.hget(keys.breakers, 'smtp')) ?? expect.fail()).breaker,
  }
}

it('each verdict counts a call, and one that Redis refuses counts none', async () => {
  const { startOne, fail, stored, redis, keys } = await stageWithCalls(100)
  const verdicts = [
    { kind: 'completed', output: {} },
    { kind: 'retrying', delayMs: 60_000 },
    { kind: 'retrying', delayMs: 0 },
    { kind: 'dead' },
  ] as const
  for (const [i, verdict] of verdicts.entries()) {
    await startOne()
    await fail(verdict)
    const { state, ...breaker } = await stored()
    expect({
      state,
      buckets: 'buckets' in breaker && breaker.buckets.reduce((sum, { failures }) => sum + failures, 0),
    }).toEqual({ state: 'closed', buckets: i + 1 })
  }
  await startOne()
  const before = await stored()
  await fail({ kind: 'dead' }, { before: (id) => lockTask(redis, keys, id, 'another worker', 5_000) })
  expect(await stored()).toEqual(before)
})

it('the end that opens a breaker does not fetch another task that depends on the service', async () => {
  const { add, startOne, fail, stored, redis, keys, startAll } = await stageWithCalls(1)
  await startOne()
  await add('b', { services: ['smtp'] })
  await fail({ kind: 'retrying', delayMs: 60_000 }, { fetches: true })
  expect((await stored()).state).toBe('open')
  expect(await redis.llen(keys.active)).toBe(0)
  const other = await add('b')
  expect(await startAll()).toEqual([other])
})
