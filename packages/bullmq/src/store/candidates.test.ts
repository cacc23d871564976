// Tests that a Worker with candidates takes only these, wherever they wait, and leaves everything else in its queue as it is.
import { randomUUID } from 'node:crypto'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { unlockTasks } from '../locks/stored-lock.fixture.ts'
import { backendFactory } from './backend.ts'

async function openQueue() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const common = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const state = { ids: [] as readonly string[], goesOn: true }
  const candidates = {
    next: () => state.ids as never,
    ...{ fetched() {}, returned() {}, noneWaits: async () => state.goesOn, stop() {} },
  }
  const queue = new Queue('q', common, backendFactory({ now: Date.now }))
  const options = { ...common, autorun: false, skipLockRenewal: true, skipStalledCheck: true }
  const worker = new Worker('q', async () => {}, options, backendFactory({ now: Date.now, candidates }))
  onTestFinished(async () => {
    await worker.close()
    await queue.obliterate({ force: true })
    await queue.close()
    redis.disconnect()
  })
  const keys = queueKeys(namespace, 'q')
  return {
    ...{ redis, queue, keys, worker, state },
    /** Sets the candidates. */
    only: (...ids: readonly string[]) => {
      state.ids = ids
    },
    add: async (...ids: readonly string[]) => {
      await queue.addBulk(ids.map((jobId) => ({ name: 'x', data: {}, opts: { jobId } })))
    },
    fetch: (): Promise<Job | undefined> => worker.getNextJob('mine', { block: false }),
    waiting: () => redis.lrange(keys.wait, 0, -1),
  }
}

it('candidates are taken in their order from the ends and the middle of the list, and no other task is', async () => {
  const { add, only, fetch, waiting } = await openQueue()
  const ids = Array.from({ length: 600 }, (_, n) => `t${n}`)
  await add(...ids)
  only('t300', 't599', 't0', 'unknown')
  expect([(await fetch())?.id, (await fetch())?.id, (await fetch())?.id]).toEqual(['t300', 't599', 't0'])
  expect(await fetch()).toBeUndefined()
  expect(await waiting()).toEqual(ids.toReversed().filter((id) => !['t300', 't599', 't0'].includes(id)))
})

it('a Worker that has no candidates takes nothing', async () => {
  const { add, fetch, waiting } = await openQueue()
  await add('t1')
  expect(await fetch()).toBeUndefined()
  expect(await waiting()).toEqual(['t1'])
})

it('candidates without a priority come first, then the highest priority, and the order of the others stays', async () => {
  const { queue, add, only, fetch, redis, keys } = await openQueue()
  for (const [jobId, priority] of [
    ['other1', 3],
    ['low', 9],
    ['high', 2],
    ['other2', 3],
  ] as const) {
    await queue.add('x', {}, { jobId, priority })
  }
  await add('none')
  only('low', 'high', 'none')
  expect([(await fetch())?.id, (await fetch())?.id, (await fetch())?.id]).toEqual(['none', 'high', 'low'])
  expect(await fetch()).toBeUndefined()
  // Without its counter, BullMQ would put later tasks of the same priority before earlier ones.
  expect(await redis.get(keys.base.concat('pc'))).toBe('4')
  expect(await redis.zrange(keys.prioritized, '0', '-1')).toEqual(['other1', 'other2'])
})

it('a candidate that is locked, active, delayed or ended is not taken', async () => {
  const { queue, add, only, fetch, redis, keys, waiting } = await openQueue()
  await add('locked', 'orphaned', 'ended', 'other')
  await queue.add('x', {}, { jobId: 'later', delay: 60_000 })
  only('locked')
  await fetch()
  only('orphaned')
  await fetch()
  await unlockTasks(redis, keys, 'orphaned')
  only('ended')
  await (await fetch())?.moveToCompleted('1', 'mine', false)
  only('locked', 'orphaned', 'ended', 'later')
  expect(await fetch()).toBeUndefined()
  expect(await waiting()).toEqual(['other'])
})

it('a candidate that is delayed is taken once it is due', async () => {
  const { queue, only, fetch, redis, keys } = await openQueue()
  await queue.add('x', {}, { jobId: 'due', delay: 60_000 })
  await redis.zadd(keys.delayed, '1', 'due')
  only('due')
  expect((await fetch())?.id).toBe('due')
})

it('nothing is taken from a queue that is paused, or at its concurrency or its rate limit', async () => {
  const { queue, add, only, fetch } = await openQueue()
  await add('t1', 't2', 't3')
  only('t1', 't2', 't3')
  await queue.pause()
  expect(await fetch()).toBeUndefined()
  await queue.resume()
  await queue.setGlobalConcurrency(1)
  expect((await fetch())?.id).toBe('t1')
  expect(await fetch()).toBeUndefined()
  await queue.setGlobalConcurrency(5)
  await queue.setGlobalRateLimit(1, 60_000)
  expect((await fetch())?.id).toBe('t2')
  expect(await fetch()).toBeUndefined()
})

it('a fetch that finds no task in the queue deletes what is stored about turns', async () => {
  const { add, only, fetch, redis, keys } = await openQueue()
  await redis.zadd(keys.turns, 1, 'a')
  await redis.hset(keys.turnState, 'waiting', 0)
  await add('other')
  only('unknown')
  await fetch()
  expect(await redis.exists(keys.turns, keys.turnState)).toBe(2)
  only('other')
  await fetch()
  await fetch()
  expect(await redis.exists(keys.turns, keys.turnState)).toBe(0)
})

it('the script that ends or delays a task takes a candidate as the next one', async () => {
  const { add, only, fetch, worker } = await openQueue()
  await add('other', 't1', 't2', 't3')
  only('t1', 't2', 't3')
  const first = await fetch()
  const [, second] = (await first?.moveToCompleted('1', 'mine', true)) ?? []
  expect(second).toBe('t2')
  const moved = await worker['backend'].moveToDelayed('t2', Date.now(), 60_000, 'mine', { fetchNext: true })
  expect(JSON.stringify(moved)).toContain('"t3"')
})

it('a Worker that has candidates leaves the marker in its place, and fetches nothing more once it has stopped', async () => {
  const { add, only, redis, keys, worker, state, waiting } = await openQueue()
  await add('t1')
  expect(await worker.getNextJob('mine', { block: false })).toBeUndefined()
  state.goesOn = false
  only('t1')
  expect(await worker.getNextJob('mine')).toBeUndefined()
  expect([await waiting(), await redis.zrange(keys.marker, '0', '-1')]).toEqual([['t1'], ['0']])
})
