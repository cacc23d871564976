// A queue has a limited number of cancel rules.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { leaderKeys, queueKeys } from '../keys.ts'
import { setup } from '../setup.fixture.ts'
import { MAX_RULES, storeRule } from './by-filter.ts'

/** A queue whose rules no leader deletes. */
async function queueWithRules(count: number) {
  const stage = await setup({ leads: false })
  const redis = new Redis(stage.redisUrl)
  onTestFinished(() => redis.disconnect())
  await redis.set(leaderKeys(stage.namespace).lease, 'the test', 'PX', 60_000)
  const keys = queueKeys(stage.namespace, 'rig')
  await redis.hset(keys.cancelRules, Object.fromEntries(Array.from({ length: count }, (_, i) => [`r${i}`, '{}'])))
  const filter = { queue: 'rig', before: 0, reason: 'cancelled' } as const
  return { ...stage, redis, keys, filter }
}

it('a cancel by filter is refused while the queue has 200 rules, and stores nothing', async () => {
  const { broker, redis, keys, filter } = await queueWithRules(MAX_RULES.cancelled)
  await expect(broker.cancelMany(filter)).rejects.toMatchObject({
    code: 'too_many_cancels',
    message: expect.stringMatching(/^queue 'rig' already has 200 unfinished .*; retry when/),
  })
  expect(await redis.hlen(keys.cancelRules)).toBe(MAX_RULES.cancelled)
  expect(await redis.keys(keys.cancelProgress('*'))).toEqual([])
  await redis.hdel(keys.cancelRules, 'r0')
  const { id } = await broker.cancelMany(filter)
  expect(await redis.hexists(keys.cancelRules, id)).toBe(1)
})

it('a drain that cancels its waiting tasks is not refused because of other rules, up to a limit of its own', async () => {
  const { broker, filter } = await queueWithRules(MAX_RULES.cancelled)
  const drain = { ...filter, reason: 'queue_shutdown' } as const
  for (let drains = MAX_RULES.cancelled; drains < MAX_RULES.queue_shutdown; drains++) await broker.cancelMany(drain)
  await expect(broker.cancelMany(drain)).rejects.toMatchObject({ code: 'too_many_cancels' })
})

it('a rule whose storing is sent again, because its reply was lost, is stored once', async () => {
  const { redis, keys, filter } = await queueWithRules(MAX_RULES.cancelled - 1)
  const request = { ...filter, id: randomUUID(), by: 'ann' }
  const { rule } = await storeRule(redis, keys, request)
  expect((await storeRule(redis, keys, request)).rule).toEqual(rule)
  expect(await redis.hlen(keys.cancelRules)).toBe(MAX_RULES.cancelled)
  // Its tasks have ended in the meantime.
  await redis.hdel(keys.cancelRules, rule.id)
  expect((await storeRule(redis, keys, request)).rule).toEqual(rule)
  expect(await redis.hexists(keys.cancelRules, rule.id)).toBe(0)
})
