// Every eighth end of an attempt removes up to sixteen old tasks with the same status, without the help of the leader. What is
// removed does not hold back the parent of a flow.
import type { Retention } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { FlowProducer } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from './keys.ts'
import { runScript } from './scripts/script.ts'
import { setup, short } from './setup.fixture.ts'
import { bullpenBackend } from './store/bullpen-backend.ts'
import { ENDS_PER_REMOVAL } from './store/moves.ts'
import { removeOldScript } from './store/scripts.ts'

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
  const added = redis.multi().hincrby(keys.totals, 'accepted', 20)
  for (let n = 0; n < 20; n++) {
    added
      .hset(keys.job(`old-${n}`), 'name', 'rig.short', 'data', '{}', 'finishedOn', n)
      .zadd(keys[status], n, `old-${n}`)
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
)('an end of a %s task in eight removes the sixteen oldest ones beyond %s', async (status, _, kept) => {
  const { redis, keys, count, totals, end } = await withOldTasks(status, { [status]: kept })
  for (let n = 1; n < ENDS_PER_REMOVAL; n++) await end()
  expect(await totals()).toMatchObject({ removed: 0 })
  await end()
  expect(await count()).toBe(20 + ENDS_PER_REMOVAL - 16)
  expect(await redis.zrange(keys[status], '0', '0')).toEqual(['old-16'])
  expect(await redis.exists(keys.job('old-0'), keys.job('old-15'), keys.job('old-16'))).toBe(1)
  expect(await totals()).toMatchObject({ accepted: 20 + ENDS_PER_REMOVAL, removed: 16, drift: 0, unaccounted: 0 })
  for (let n = 0; n < ENDS_PER_REMOVAL; n++) await end()
  expect(await totals()).toMatchObject({ unaccounted: 0 })
  expect(await redis.exists(...Array.from({ length: 20 }, (_each, n) => keys.job(`old-${n}`)))).toBe(0)
})

it('the end of a task does not remove tasks with another status', async () => {
  const { count, end } = await withOldTasks('dead', { completed: { count: 1 }, cancelled: { count: 1 } })
  for (let n = 0; n < ENDS_PER_REMOVAL; n++) await end()
  expect(await count()).toBe(20 + ENDS_PER_REMOVAL)
})

it('the parent of a flow goes on when the last of its dead children is removed', async () => {
  const { broker, namespace, redisUrl } = await setup({ leads: false })
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const flows = new FlowProducer({ connection: redis, prefix: prefixOf(namespace, 'rig') }, bullpenBackend())
  onTestFinished(async () => {
    await flows.close()
    redis.disconnect()
  })
  const keys = queueKeys(namespace, 'rig')
  const node = { name: 'rig.short', queueName: 'rig', opts: { delay: 3_600_000 } }
  const { job: parent, children = [] } = await flows.add({ ...node, opts: {}, children: [node, node] })
  for (const { job } of children) {
    await redis
      .multi()
      .zrem(keys.delayed, job.id ?? '')
      .zrem(keys.scheduled, job.id ?? '')
      .exec()
    await redis
      .multi()
      .zadd(keys.failed, 1, job.id ?? '')
      .zadd(keys.dead, 1, job.id ?? '')
      .exec()
  }
  const args = { fencing: 1, now: Date.now(), retention: JSON.stringify({ dead: { count: 0 } }), base: keys.base }
  expect(await runScript(redis, removeOldScript, keys, { ...args, limit: 1 })).toBe(1)
  expect(await parent.getState()).toBe('waiting-children')
  expect(await runScript(redis, removeOldScript, keys, { ...args, limit: 1 })).toBe(1)
  expect(await parent.getState()).toBe('waiting')
  expect(await redis.zscore(keys.marker, '0')).toBe('0')
  expect(await broker.counts('rig')).toMatchObject({ waiting: 1, dead: 0 })
  expect(await broker.totals('rig')).toMatchObject({ accepted: 3, removed: 2, drift: 0, unaccounted: 0 })
})
