// When the leader finds the tasks of a worker that no longer renews its locks.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { lockLeftMs, lockTask } from '../locks/stored-lock.fixture.ts'
import { requeueAsLocksExpire } from './lost-tasks.ts'

/** Active tasks, with the time that each one's lock has left, in ms. */
async function activeTasks(locks: Readonly<Record<string, number>>) {
  const redis = new Redis(inject('redisUrl'))
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  onTestFinished(() => redis.disconnect())
  for (const [id, leftMs] of Object.entries(locks)) {
    await redis.hset(keys.job(id), { name: 'a.b', data: '{}', opts: '{}', timestamp: 1, ats: 1, processedOn: 5 })
    await redis.lpush(keys.active, id)
    await lockTask(redis, keys, id, 'token', leftMs)
  }
  return {
    redis,
    keys,
    requeue: (isOver = () => false) => requeueAsLocksExpire(redis, keys, { fencing: 1, isOver, now: Date.now }),
    waiting: async () => (await redis.lrange(keys.wait, 0, -1)).toSorted(),
  }
}

it('tasks whose locks have not been renewed since the check before are requeued when these locks expire', async () => {
  const { redis, keys, requeue, waiting } = await activeTasks({ first: 200, second: 500, alive: 60_000 })
  await requeue()
  expect(await redis.lrange(keys.active, 0, -1)).toHaveLength(3)
  await requeue()
  expect(await waiting()).toEqual(['first', 'second'])
})

it('a task whose lock expires after the next round is left to that round', async () => {
  const { redis, keys, requeue } = await activeTasks({ later: 60_000 })
  await requeue()
  await requeue()
  expect(await redis.lrange(keys.active, 0, -1)).toEqual(['later'])
})

it('a task whose lock is renewed while the leader waits for its expiry keeps running', async () => {
  const { redis, keys, requeue } = await activeTasks({ renewed: 400 })
  await requeue()
  const requeued = requeue()
  await lockTask(redis, keys, 'renewed', 'token', 60_000)
  await redis.srem(keys.unrenewed, 'renewed')
  await requeued
  expect(await redis.lrange(keys.active, 0, -1)).toEqual(['renewed'])
})

it('a leader whose term is over does not wait for locks', async () => {
  const { redis, keys, requeue } = await activeTasks({ first: 1_500 })
  await requeue()
  await requeue(() => true)
  expect(await redis.lrange(keys.active, 0, -1)).toEqual(['first'])
  expect(await lockLeftMs(redis, keys, 'first')).toBeGreaterThan(0)
})
