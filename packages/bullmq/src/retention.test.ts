// The end of an attempt removes up to two old tasks with the same status, without the help of the leader.
import type { Retention } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { queueKeys } from './keys.ts'
import { setup, short } from './setup.fixture.ts'

/** A queue with ten tasks that ended long ago, and a pool whose handler fails if its input is 1. */
async function withOldTasks(status: 'completed' | 'dead', retention: Retention) {
  const { namespace, redisUrl, broker, startPool, enqueue } = await setup({
    leads: false,
    retention,
    handle: ({ input }) => {
      if (input.n === 1) throw new Error('broken')
      return input
    },
  })
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(namespace, 'rig')
  const added = redis.multi().hincrby(keys.totals, 'accepted', 10)
  for (let n = 0; n < 10; n++) {
    added.hset(keys.job(`old-${n}`), 'name', 'rig.short', 'data', '{}').zadd(keys[status], n, `old-${n}`)
    if (status === 'dead') added.zadd(keys.failed, n, `old-${n}`)
  }
  await added.exec()
  await startPool()
  return {
    redis,
    keys,
    count: async () => (await broker.counts('rig'))[status],
    totals: () => broker.totals('rig'),
    async end(): Promise<void> {
      const id = await enqueue(short, { input: { n: status === 'dead' ? 1 : 0 }, maxAttempts: 1 })
      await eventually(async () => (await broker.find(id))?.status === status)
    },
  }
}

it.each(
  (['completed', 'dead'] as const).flatMap((status) => [
    [status, 'the age', { ageMs: 60_000 }] as const,
    [status, 'the count', { count: 1 }] as const,
  ]),
)('each end of a %s task removes the two oldest ones beyond %s', async (status, _, kept) => {
  const { redis, keys, count, totals, end } = await withOldTasks(status, { [status]: kept })
  await end()
  expect(await count()).toBe(9)
  expect(await redis.zrange(keys[status], '0', '0')).toEqual(['old-2'])
  expect(await redis.exists(keys.job('old-0'), keys.job('old-1'), keys.job('old-2'))).toBe(1)
  expect(await totals()).toEqual({ accepted: 11, removed: 2, drift: 0, unaccounted: 0 })
  for (let n = 0; n < 9; n++) await end()
  expect(await totals()).toMatchObject({ unaccounted: 0 })
  expect(await redis.exists(...Array.from({ length: 10 }, (_each, n) => keys.job(`old-${n}`)))).toBe(0)
})

it('the end of a task does not remove tasks with another status', async () => {
  const { count, end } = await withOldTasks('dead', { completed: { count: 1 }, cancelled: { count: 1 } })
  await end()
  expect(await count()).toBe(11)
})
