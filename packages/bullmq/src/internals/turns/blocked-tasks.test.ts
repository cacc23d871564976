// What is read of the waiting tasks that may not start, on a real Redis.

import { DEFAULT_BREAKER } from '@bullpen/contract/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { defineBreakers } from '../../breakers/stored-breaker.ts'
import { applySettings } from '../../fleet/queue-settings.ts'
import { readQueueHead } from '../../queries/queue-head.ts'
import { runnerOn, runScript } from '../../scripts/script.ts'
import { QUEUE } from '../index-model/worker.fixture.ts'
import { THROTTLE_MARK } from '../throttle.ts'

/** As in blocked-tasks.lua. */
const COUNTED_LANES = 100

import { throttleScript } from '../../store/scripts.ts'
import { NO_KEY, stage } from './stage.fixture.ts'

const HOUR = 3_600_000
const db = [{ limiter: 'permits:db', amount: 1 }]

async function staged() {
  const all = await stage()
  return { ...all, head: () => readQueueHead(all.redis, all.keys), longAgo: Date.now() - HOUR }
}

it('the head of the queue is its only task', async () => {
  const { add, head, longAgo } = await staged()
  const id = await add('a', { enqueuedAt: longAgo })
  expect(await head()).toEqual({
    oldest: { id, task: 'model.task', enqueuedAt: longAgo, readyAt: longAgo },
    nextReadyAt: longAgo,
    blockedTasks: 0,
    oldestBlocked: undefined,
    isPaused: false,
    isDraining: false,
  })
})

it('if every waiting task is blocked by the limit of its key, the oldest one still has its age, and none starts next', async () => {
  const { addSeveral, limit, startAll, complete, head, longAgo } = await staged()
  await limit({ concurrency: 1 })
  const [, oldest] = await addSeveral('a', 3, { enqueuedAt: longAgo })
  await addSeveral('b', 2)
  expect(await head()).toMatchObject({ nextReadyAt: longAgo, blockedTasks: 0 })
  await startAll()
  expect(await head()).toMatchObject({
    oldest: { id: oldest, readyAt: longAgo },
    nextReadyAt: undefined,
    blockedTasks: 3,
    oldestBlocked: { id: oldest, readyAt: longAgo },
  })
  await complete()
  // That of the key b.
  expect(await head()).toMatchObject({ nextReadyAt: expect.any(Number), blockedTasks: 2 })
})

it('a task that waits for its turn or behind others with a higher priority is not blocked, however old it is', async () => {
  const { add, addSeveral, start, head, longAgo } = await staged()
  const [, old] = await addSeveral('a', 3, { enqueuedAt: longAgo })
  await add('b', { enqueuedAt: longAgo + 5 })
  expect(await start(1)).toHaveLength(1)
  expect(await head()).toMatchObject({ oldest: { id: old }, nextReadyAt: longAgo + 5, oldestBlocked: undefined })
  const urgent = await staged()
  const last = await urgent.add(NO_KEY, { priority: 1, enqueuedAt: longAgo })
  await urgent.add(NO_KEY, { enqueuedAt: longAgo + 5 })
  expect(await urgent.head()).toMatchObject({
    oldest: { id: last },
    nextReadyAt: longAgo + 5,
    oldestBlocked: undefined,
  })
})

it('the oldest blocked task is not the oldest one if an older task of another key waits for its turn', async () => {
  const { add, addSeveral, limit, startAll, head, longAgo } = await staged()
  await limit({ concurrency: 1 }, 'a')
  const [, blocked] = await addSeveral('a', 2, { enqueuedAt: longAgo + 5 })
  await startAll()
  const oldest = await add('b', { enqueuedAt: longAgo })
  expect(await head()).toMatchObject({ oldest: { id: oldest }, oldestBlocked: { id: blocked, readyAt: longAgo + 5 } })
})

it('if some tasks are blocked, the oldest task may be one of them, and the next one is not', async () => {
  const { add, addSeveral, limit, startAll, head, longAgo } = await staged()
  await limit({ concurrency: 1 }, 'a')
  await addSeveral('a', 3, { enqueuedAt: longAgo })
  await startAll()
  const at = longAgo + 5
  await add('b', { enqueuedAt: at })
  expect(await head()).toMatchObject({ oldest: { readyAt: longAgo }, nextReadyAt: at, blockedTasks: 2 })
  await startAll()
  await add(NO_KEY, { enqueuedAt: at })
  expect(await head()).toMatchObject({ oldest: { readyAt: longAgo }, nextReadyAt: at, blockedTasks: 2 })
})

it('tasks that wait for permits are blocked, with and without a priority', async () => {
  const { addSeveral, setCapacity, startAll, head } = await staged()
  await setCapacity('permits:db', 1)
  await addSeveral(NO_KEY, 2, { needs: db })
  await addSeveral(NO_KEY, 2, { needs: db, priority: 1 })
  await startAll()
  expect(await head()).toMatchObject({ nextReadyAt: undefined, blockedTasks: 3 })
  await setCapacity('permits:db', 'none')
  expect(await head()).toMatchObject({ blockedTasks: 0 })
})

it('tasks of a key that may start again by now are not blocked, although no worker has fetched since', async () => {
  const { addSeveral, limit, startAll, redis, keys, head, longAgo } = await staged()
  await limit({ rate: { max: 1, perMs: HOUR, burst: 1 } })
  await addSeveral('a', 3, { enqueuedAt: longAgo })
  await startAll()
  expect(await head()).toMatchObject({ nextReadyAt: undefined, blockedTasks: 2 })
  await redis.zadd(keys.laneTimes, 1, 'a')
  expect(await head()).toMatchObject({ nextReadyAt: longAgo, blockedTasks: 0, oldestBlocked: undefined })
})

it('tasks that depend on a service with an open breaker are blocked, except one as soon as the service may be probed', async () => {
  const { addSeveral, startAll, redis, keys, head, violations } = await staged()
  const breaker = { ...DEFAULT_BREAKER, openMs: HOUR, maxOpenMs: HOUR }
  await defineBreakers(runnerOn(redis), keys, { smtp: breaker }, { replaces: true })
  const spec = { action: 'breaker', queue: QUEUE, service: 'smtp', to: 'open' } as const
  await applySettings(redis, keys, { id: 'c', spec, by: 'ann', sequence: '1', at: 0 })
  await addSeveral(NO_KEY, 5, { needs: [{ limiter: 'service:smtp', amount: 1 }] })
  expect(await startAll()).toEqual([])
  expect(await head()).toMatchObject({ nextReadyAt: undefined, blockedTasks: 5 })
  await redis.zadd(keys.laneTimes, 1, '\x1eservice:smtp')
  expect(await head()).toMatchObject({ nextReadyAt: expect.any(Number), blockedTasks: 4 })
  await redis.zrem(keys.laneTimes, '\x1eservice:smtp')
  await applySettings(redis, keys, { id: 'd', spec: { ...spec, to: 'closed' }, by: 'ann', sequence: '2', at: 0 })
  expect(await head()).toMatchObject({ nextReadyAt: expect.any(Number), blockedTasks: 0 })
  expect(await violations()).toEqual([])
})

it('every task of a queue at its own limit is blocked', async () => {
  const { addSeveral, start, complete, redis, keys, head } = await staged()
  await redis.hset(keys.meta, 'concurrency', 1)
  await addSeveral('a', 2)
  await addSeveral(NO_KEY, 2)
  await addSeveral(NO_KEY, 2, { priority: 1 })
  expect(await head()).toMatchObject({ blockedTasks: 0 })
  await start(1)
  const { oldest, ...rest } = await head()
  expect(rest).toMatchObject({ nextReadyAt: undefined, blockedTasks: 5, oldestBlocked: { id: oldest?.id } })
  await complete()
  expect(await head()).toMatchObject({ nextReadyAt: expect.any(Number), blockedTasks: 0 })
})

it('every task of a queue that has used up its rate or that a handler has throttled is blocked until that ends', async () => {
  const { addSeveral, redis, keys, head } = await staged()
  await addSeveral(NO_KEY, 3)
  await redis.hset(keys.meta, 'max', 2, 'duration', HOUR)
  await redis.set(keys.limiter, 1, 'PX', HOUR)
  expect(await head()).toMatchObject({ blockedTasks: 0 })
  await redis.set(keys.limiter, 2, 'PX', HOUR)
  expect(await head()).toMatchObject({ nextReadyAt: undefined, blockedTasks: 3 })
  await redis.del(keys.limiter)
  await redis.hdel(keys.meta, 'max', 'duration')
  await runScript(redis, throttleScript, keys, { duration: 300, mark: THROTTLE_MARK, hasOwnRate: '1' })
  expect(await head()).toMatchObject({ nextReadyAt: undefined, blockedTasks: 3 })
  await eventually(async () => (await head()).blockedTasks === 0)
})

it('a paused queue blocks no task, and the head says that the queue is paused or draining', async () => {
  const { add, queue, redis, keys, head } = await staged()
  await add('a')
  await queue.pause()
  expect(await head()).toMatchObject({
    nextReadyAt: expect.any(Number),
    blockedTasks: 0,
    isPaused: true,
    isDraining: false,
  })
  await queue.resume()
  const spec = { action: 'drain', queue: QUEUE, mode: 'soft' } as const
  await applySettings(redis, keys, { id: 'c', spec, by: 'ann', sequence: '1', at: 0 })
  expect(await head()).toMatchObject({ isPaused: false, isDraining: true })
})

it('if too many lanes take turns to count their tasks, those of some blocked lanes are counted', async () => {
  const { add, limit, startAll, redis, keys, head } = await staged()
  for (let i = 0; i <= COUNTED_LANES; i++) await add(`a${i}`)
  await limit({ concurrency: 1 }, 'z')
  for (let i = 0; i < 3; i++) await add('z')
  await redis.zadd(keys.turns, -1, 'z')
  await startAll(1)
  expect(await redis.zcard(keys.turns)).toBe(COUNTED_LANES + 1)
  expect(await head()).toMatchObject({ nextReadyAt: expect.any(Number), blockedTasks: 2 })
})

it('among more lanes than are looked at, the oldest task is that of the lane that has had one for the longest time', async () => {
  const { add, limit, startAll, head, longAgo } = await staged()
  await limit({ concurrency: 1 })
  await add('z')
  await add('z', { enqueuedAt: longAgo })
  for (let i = 0; i < 40; i++) await add(`a${i}`)
  await startAll()
  for (let i = 0; i < 40; i++) await add(`a${i}`)
  expect(await head()).toMatchObject({
    oldest: { readyAt: longAgo },
    blockedTasks: 41,
    oldestBlocked: { readyAt: longAgo },
  })
})
