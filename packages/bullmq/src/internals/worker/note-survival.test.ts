// A task whose process lives through an outage of Redis that lasts longer than its lock: no death is counted, whether the process or the
// leader reaches Redis first, and no loss either.
import { MAX_LOSSES } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../../keys.ts'
import { unlockTasks } from '../../locks/stored-lock.fixture.ts'
import { long, setup } from '../../setup.fixture.ts'

/** The locks outlast every pause of a busy machine: the tests take them away, as their expiry would. */
const LOCKS = { lockMs: 600_000, renewalMs: 200 }

/** A pool that runs a task, behind a proxy, and a leader that reaches Redis directly. */
async function stage(roundMs: number) {
  const redisUrl = inject('redisUrl')
  const proxy = await faultProxy(redisUrl)
  const redis = new Redis(redisUrl)
  const started: number[] = []
  const all = await setup({
    locks: LOCKS,
    roundMs,
    concurrency: 1,
    handle: async ({ input, fencingToken, signal }) => {
      started.push(fencingToken)
      if (fencingToken === 1) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return input
    },
  })
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  const keys = queueKeys(all.namespace, 'rig')
  const id = await all.enqueue(long, { input: { n: 1 } })
  await redis.hset(keys.job(id), 'stc', MAX_LOSSES - 1)
  await all.startPool(proxy.url)
  await eventually(() => started.length === 1)
  return { ...all, id, redis, keys, proxy, field: (name: string) => redis.hget(keys.job(id), name) }
}

it('a death that the leader has counted is taken back when the process reaches Redis again', async () => {
  const { id, proxy, redis, keys, field, settled } = await stage(50)
  proxy.cut()
  await unlockTasks(redis, keys, id)
  // Recovered, the task waits for a worker.
  await eventually(async () => (await field('deaths')) === '1')
  expect(await redis.llen(keys.wait)).toBe(1)
  proxy.reset()
  await eventually(async () => (await field('deaths')) === null)
  expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2 })
  expect(await field('stc')).toBe(`${MAX_LOSSES - 1}`)
})

it('no death is counted if the process reaches Redis before the leader recovers the task', async () => {
  const { id, proxy, redis, keys, field, settled } = await stage(50)
  // Without a leader, nothing is recovered.
  await redis.hset(keys.meta, 'paused', '1')
  proxy.cutAnswers()
  await unlockTasks(redis, keys, id)
  await redis.lrem(keys.active, 1, id)
  proxy.reset()
  await eventually(async () => (await field('livedIn')) === '1')
  await redis.hset(keys.job(id), 'stc', MAX_LOSSES)
  await redis.lpush(keys.active, id)
  await redis.hdel(keys.meta, 'paused')
  expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2 })
  expect(await field('deaths')).toBeNull()
  expect(await field('stc')).toBe(`${MAX_LOSSES}`)
})
