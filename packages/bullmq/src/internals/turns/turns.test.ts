// The order in which the tasks of a fair queue start, on a real Redis.
import type { TaskId } from '@bullpen/contract'
import { Job } from 'bullmq'
import { expect, it } from 'vitest'
import { countRemaining } from '../../queries/counts.ts'
import { QUEUE } from '../index-model/worker.fixture.ts'
import { laneViolations } from './lane-scan.fixture.ts'
import { NO_KEY, stage } from './stage.fixture.ts'

it('the keys take turns, whatever each of them has waiting', async () => {
  const { addSeveral, start, keysOf } = await stage()
  await addSeveral('noisy', 50)
  await addSeveral('b', 2)
  await addSeveral('c', 2)
  expect(keysOf(await start(8))).toBe('noisy b c noisy b c noisy noisy')
})

it('a key starts as many tasks for each task of another key as its weight says', async () => {
  const { addSeveral, start, keysOf } = await stage()
  await addSeveral('a', 40, { weight: 3 })
  await addSeveral('b', 40)
  await addSeveral('c', 40, { weight: 0.5 })
  const started = keysOf(await start(45)).split(' ')
  const count = (key: string): number => started.filter((each) => each === key).length
  expect([count('a'), count('b'), count('c')]).toEqual([30, 10, 5])
})

it('a task keeps the weight that it was enqueued with, also behind tasks with another weight', async () => {
  const { addSeveral, start, keysOf } = await stage()
  await addSeveral('a', 4)
  await addSeveral('a', 12, { weight: 4 })
  await addSeveral('b', 20)
  expect(keysOf(await start(8))).toBe('a b a b a b a b')
  expect(keysOf(await start(10))).toBe('a b a a a a b a a a')
})

it('the weights hold however many tasks have started', async () => {
  const { addSeveral, start, keysOf, redis, keys } = await stage()
  await addSeveral('a', 1)
  await redis.zadd(keys.turns, 2 ** 53, 'a', 2 ** 53, 'ended')
  await redis.hset(keys.turnState, 'pass', 2 ** 53)
  await addSeveral('b', 12, { weight: 3 })
  await addSeveral('a', 12)
  await addSeveral(NO_KEY, 12)
  const started = keysOf(await start(20)).split(' ')
  const count = (key: string): number => started.filter((each) => each === key).length
  expect([count('a'), count('b'), count('-')]).toEqual([4, 12, 4])
  expect(await redis.zscore(keys.turns, 'ended')).toBeNull()
})

it('when all lanes begin again, a blocked one stays blocked, and later takes its turns', async () => {
  const { addSeveral, start, limit, keysOf, violations, redis, keys } = await stage()
  await limit({ concurrency: 1 }, 'full')
  await addSeveral('full', 12)
  await addSeveral('b', 12)
  await start(2)
  for (const set of [keys.turns, keys.blockedLanes]) {
    for (const key of await redis.zrange(set, '0', '-1')) await redis.zadd(set, 2 ** 53, key)
  }
  await redis.hset(keys.turnState, 'time', 2 ** 53)
  for (let i = 0; i < 2; i++) {
    expect(keysOf(await start(1))).toBe('b')
    expect(await violations()).toEqual([])
  }
  await limit({ concurrency: 'none' }, 'full')
  expect(keysOf(await start(8)).match(/full/g)).toHaveLength(4)
})

it('the tasks without a key are one lane more', async () => {
  const { addSeveral, start, keysOf } = await stage()
  await addSeveral(NO_KEY, 20)
  await addSeveral('a', 20)
  await addSeveral('b', 20)
  const started = keysOf(await start(30)).split(' ')
  const count = (key: string): number => started.filter((each) => each === key).length
  expect(count('a')).toBeGreaterThanOrEqual(9)
  expect(count('b')).toBeGreaterThanOrEqual(9)
  expect(count('-')).toBeGreaterThanOrEqual(10)
})

it('the tasks of a key start in the order of their priorities, and then of their enqueueing', async () => {
  const { add, start } = await stage()
  const last = await add('a', { priority: 5 })
  const third = await add('a', { priority: 2 })
  const fourth = await add('a', { priority: 2 })
  const [first, second] = [await add('a'), await add('a')]
  expect(await start(5)).toEqual([first, second, third, fourth, last])
})

it('new keys do not hold up a key that waits', async () => {
  const { add, addSeveral, start, keysOf } = await stage()
  await addSeveral('z', 2)
  await start(1)
  const started: string[] = []
  for (let i = 0; i < 20; i++) {
    await add(`a${i}0`)
    await add(`a${i}1`)
    started.push(...(await start(1)))
  }
  expect(keysOf(started)).toContain('z')
})

it('a key with one task at a time is not always first', async () => {
  const { add, addSeveral, start, keysOf } = await stage()
  await addSeveral('many', 10)
  const started: string[] = []
  for (let i = 0; i < 8; i++) {
    await add('one')
    started.push(...(await start(2)))
  }
  expect(keysOf(started).match(/many/g)).toHaveLength(8)
})

it('a requeued task is the next one of its key', async () => {
  const { addSeveral, start, end, keys, redis } = await stage()
  const [first] = await addSeveral('a', 3)
  await start(1)
  await end(
    1,
    () => ({ kind: 'requeued', throttleMs: undefined }),
    async () => undefined,
  )
  expect(await redis.lrange(keys.lane('a'), -1, -1)).toEqual([first])
})

it('a requeued task with a priority wakes a worker', async () => {
  const { add, start, end, redis, keys } = await stage()
  await add('a', { priority: 3 })
  await start(1)
  await redis.del(keys.marker)
  await end(
    1,
    () => ({ kind: 'requeued', throttleMs: undefined }),
    async () => undefined,
  )
  expect(await redis.zcard(keys.lanePriorities('a'))).toBe(1)
  expect(await redis.zscore(keys.marker, '0')).toBe('0')
})

it('the first task of a lane wakes a worker, and those that are added behind it do not', async () => {
  const { add, start, redis, keys } = await stage()
  const wakes = async (key: string, given = {}): Promise<boolean> => {
    await redis.del(keys.marker)
    await add(key, given)
    return (await redis.zscore(keys.marker, '0')) !== null
  }
  expect([await wakes('a'), await wakes('a'), await wakes('b'), await wakes('a', { priority: 3 })]).toEqual([
    ...[true, false, true, false],
  ])
  expect([await wakes('c', { priority: 3 }), await wakes('c', { priority: 2 }), await wakes('c')]).toEqual([
    ...[true, false, false],
  ])
  // The start of each task wakes the worker that starts the next one.
  for (let tasks = 7; tasks > 0; tasks--) {
    await redis.del(keys.marker)
    await start(1)
    expect(await redis.zscore(keys.marker, '0')).toBe('0')
  }
  expect(await wakes('a')).toBe(true)
})

it('a paused queue starts no task of a key, and wakes a worker when it is resumed', async () => {
  const { add, fetch, queue, redis, keys, start } = await stage()
  await add('a')
  await queue.pause()
  expect(await fetch('bullpen')).toBe(false)
  await queue.resume()
  expect(await redis.zscore(keys.marker, '0')).toBe('0')
  await start(1)
})

it('a queue is reported as drained when no task is left in a lane', async () => {
  const { addSeveral, start, end, queue, redis, keys } = await stage()
  await addSeveral('a', 2)
  const finish = async (): Promise<readonly string[]> => {
    await start(1)
    await queue.pause()
    await end(
      1,
      () => ({ kind: 'completed', output: { n: 1 } }),
      async () => 'done',
    )
    await queue.resume()
    const events = await redis.xrange(keys.events, '-', '+')
    return events.map(([, [, event = '']]) => event).filter((event) => event === 'drained')
  }
  expect(await finish()).toEqual([])
  expect(await finish()).toEqual(['drained'])
})

it('a task that another tool has deleted is skipped', async () => {
  const { add, start, redis, keys } = await stage()
  const [gone, kept] = [await add('a'), await add('b')]
  await redis.del(keys.job(gone))
  expect(await start(1)).toEqual([kept])
  expect(await laneViolations(redis, keys)).toEqual([])
})

it('after more empty lanes than a script looks at, a worker wakes and finds the task', async () => {
  const { add, addSeveral, start, fetch, redis, keys } = await stage()
  for (let i = 0; i < 40; i++) await add(`a${i}`)
  await addSeveral('z', 2, { weight: 0.1 })
  await start(41)
  await redis.zremrangebyrank(keys.marker, 0, -1)
  expect(await fetch('bullpen')).toBe(false)
  expect(await redis.zscore(keys.marker, '0')).toBe('0')
  expect(await fetch('bullpen')).toBe(true)
})

it('a queue without keys stores nothing about turns', async () => {
  const { addSeveral, start, redis, keys } = await stage()
  await addSeveral(NO_KEY, 3)
  await start(2)
  expect(await redis.exists(keys.lanes, keys.turns, keys.turnState)).toBe(0)
})

it("a team's own Queue removes and drains tasks that are in lanes", async () => {
  const { addSeveral, queue, redis, keys, broker } = await stage()
  const [first = ''] = await addSeveral('a', 3)
  await (await Job.fromId(queue, first))?.remove()
  expect((await broker.counts(QUEUE)).waiting).toBe(2)
  await queue.drain()
  expect((await broker.counts(QUEUE)).waiting).toBe(0)
  expect(await redis.exists(keys.lanes, keys.turns, keys.turnState, keys.lane('a'))).toBe(0)
})

it("a team's own Queue changes the priority of a task within its lane", async () => {
  const { addSeveral, start, queue, redis, keys } = await stage()
  const [first = '', second = '', third = ''] = await addSeveral('a', 3)
  const change = async (id: string, priority: number) => (await Job.fromId(queue, id))?.changePriority({ priority })
  await change(first, 5)
  await change(second, 2)
  expect(await laneViolations(redis, keys)).toEqual([])
  await change(first, 1)
  expect(await start(3)).toEqual([third, first, second])
})

it("a team's own Queue cleans the oldest tasks in lanes, as many as it says", async () => {
  const { addSeveral, queue, redis, keys, broker } = await stage()
  const at = Date.now() - 60_000
  const [oldest = '', older = '', old = ''] = await addSeveral('a', 3, { enqueuedAt: at })
  const [other = ''] = await addSeveral('b', 1, { enqueuedAt: at })
  const [urgent = ''] = await addSeveral('b', 1, { enqueuedAt: at, priority: 1 })
  const [fresh] = await addSeveral('b', 1)
  expect(await queue.clean(30_000, 2, 'wait')).toEqual([older, oldest])
  expect(await laneViolations(redis, keys)).toEqual([])
  expect(await queue.clean(30_000, 0, 'wait')).toEqual([old, other])
  expect(await redis.lrange(keys.lane('b'), 0, -1)).toEqual([fresh])
  expect(await queue.clean(30_000, 10, 'prioritized')).toEqual([urgent])
  expect((await broker.counts(QUEUE)).waiting).toBe(1)
  expect(await laneViolations(redis, keys)).toEqual([])
})

it('a task that had no place in quarantine returns to the head of its lane', async () => {
  const { addSeveral, start, redis, keys } = await stage()
  const [first, second, third = ''] = await addSeveral('a', 3)
  // As a worker leaves a task that it has no place for.
  await redis.lrem(keys.lane('a'), 1, third)
  await redis.hincrby(keys.turnState, 'waiting', -1)
  await redis.hset(keys.job(third), 'waits', 1)
  await redis.zadd(keys.delayed, 4_096, third)
  await redis.zadd(keys.scheduled, 4_096, third)
  expect(await start(3)).toEqual([third, first, second])
  expect(await laneViolations(redis, keys)).toEqual([])
})

it('a light drain waits for the tasks in lanes', async () => {
  const { addSeveral, redis, keys } = await stage()
  await addSeveral('a', 2)
  await addSeveral('b', 1, { priority: 1 })
  await addSeveral(NO_KEY, 1)
  expect(await countRemaining(redis, keys)).toBe(4)
})

it('the board reads the tasks in lanes page by page, as the waiting tasks of their queue', async () => {
  const { addSeveral, broker } = await stage()
  const ids = [
    ...(await addSeveral('a', 3)),
    ...(await addSeveral('b', 2, { priority: 2 })),
    ...(await addSeveral('b', 1)),
  ]
  const page = async (start: number, end: number) => {
    const jobs = await broker.boardJobs({ queue: QUEUE, status: 'in lanes', start, end })
    return jobs.map(({ id }) => ids.indexOf(id as TaskId))
  }
  expect(await page(0, 1)).toEqual([0, 1])
  expect(await page(2, 4)).toEqual([2, 5, 3])
  expect(await page(5, 9)).toEqual([4])
  expect(await page(0, -1)).toEqual([0, 1, 2, 5, 3, 4])
})
