// Which limits of concurrency keys allow no start, and listings of more keys than one script examines, on a real Redis.
import { DEFAULT_BREAKER } from '@bullpen/contract/internal'
import type { KeyListQuery } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import { defineBreakers } from '../breakers/stored-breaker.ts'
import { QUEUE } from '../internals/index-model/worker.fixture.ts'
import { defineLimits } from '../internals/turns/key-limits.ts'
import { NO_KEY, stage } from '../internals/turns/stage.fixture.ts'
import { runnerOn } from '../scripts/script.ts'

async function listed() {
  const world = await stage()
  const { broker } = world
  const page = (order: KeyListQuery['order'], limit = 200, cursor?: string) =>
    broker.concurrencyKeys({ queue: QUEUE, order, limit, cursor })
  return {
    ...world,
    page,
    one: async (concurrencyKey: string) => (await broker.concurrencyKeys({ queue: QUEUE, concurrencyKey })).keys[0],
    async allKeys(order: KeyListQuery['order'], limit: number) {
      const keys: string[] = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const { keys: shown, next }: Awaited<ReturnType<typeof page>> = await page(order, limit, cursor || undefined)
        keys.push(...shown.map(({ key }) => key))
        cursor = next
      }
      return keys
    },
  }
}

it('a key shows its limits, what has set them, and which of them allow no start', async () => {
  const { addSeveral, limit, startAll, one, page, redis, keys } = await listed()
  const slow = { max: 1, perMs: 3_600_000, burst: 1 }
  const keyLimits = { concurrency: 2, keys: { slow: { rate: slow } } }
  await defineLimits(runnerOn(redis), keys, { keyLimits, capacities: {} }, { replaces: true })
  await limit({ concurrency: 3 }, 'more')
  await limit({ rate: { max: 100, perMs: 60_000, burst: 5 } })
  await addSeveral('full', 4)
  await addSeveral('more', 4)
  await addSeveral('slow', 4)
  await startAll()
  const burst = { value: { max: 100, perMs: 60_000, burst: 5 }, source: 'command', isOwn: false }
  const every = { value: 2, source: 'definition', isOwn: false }
  expect(await one('full')).toEqual({
    ...{ key: 'full', waiting: 2, active: 2, concurrency: every, rate: burst },
    ...{ blockedBy: ['concurrency'], nextStartAt: undefined },
  })
  expect(await one('more')).toMatchObject({
    ...{ waiting: 1, active: 3, concurrency: { value: 3, source: 'command', isOwn: true }, rate: burst },
    blockedBy: ['concurrency'],
  })
  expect(await one('slow')).toEqual({
    ...{ key: 'slow', waiting: 3, active: 1, concurrency: every },
    ...{ rate: { value: slow, source: 'definition', isOwn: true }, blockedBy: ['rate'] },
    nextStartAt: Number(await redis.zscore(keys.laneTimes, 'slow')),
  })
  // A limit applies before the next fetch has looked at the key.
  await limit({ concurrency: 0 }, 'slow')
  expect((await one('slow'))?.blockedBy).toEqual(['concurrency', 'rate'])
  await limit({ concurrency: 0 }, 'stopped')
  expect(await one('stopped')).toMatchObject({ waiting: 0, active: 0, blockedBy: ['concurrency'] })
  expect((await page('active')).keys.map(({ key, active }) => [key, active])).toEqual([
    ['more', 3],
    ['full', 2],
    ['slow', 1],
  ])
})

it('a key that a handler has throttled shows until when, also in a queue without limits', async () => {
  const { addSeveral, throttle, start, one, redis, keys } = await listed()
  await addSeveral('a', 2)
  const [first = ''] = await start(1)
  await throttle(first, 60_000)
  expect(await one('a')).toMatchObject({
    ...{ waiting: 1, active: 1, blockedBy: ['throttle'], rate: undefined },
    nextStartAt: Number(await redis.zscore(keys.keyThrottles, 'a')),
  })
})

it('the keys with the longest backlogs are found among more lanes than one script examines', async () => {
  const { page, allKeys, redis, keys } = await listed()
  const lengths = new Map(
    Array.from({ length: 1_234 }, (_, i) => [`key${i}`, i % 500 === 7 ? 5 + (i % 3) : 1 + (i % 2)]),
  )
  const pipeline = redis.pipeline()
  for (const [i, [key, length]] of [...lengths].entries()) {
    pipeline.zadd(keys.lanes, i + 1, key)
    pipeline.lpush(keys.lane(key), ...Array.from({ length }, (_, n) => `${key}-${n}`))
  }
  await pipeline.exec()
  const top = await page('backlog', 3)
  expect(top.keys.map(({ key, waiting }) => [key, waiting])).toEqual([
    ['key1007', 7],
    ['key7', 6],
    ['key507', 5],
  ])
  expect(top).toMatchObject({ waitingKeys: 1_234, exact: true })
  const expected = [...lengths].sort(([a, one], [b, other]) => other - one || (a < b ? 1 : -1)).map(([key]) => key)
  expect(await allKeys('backlog', 200)).toEqual(expected)
})

it('a key whose tasks need different permits is listed once, and tasks without a key are not listed', async () => {
  const { addSeveral, setCapacity, start, page, allKeys, one } = await listed()
  await setCapacity('permits:db', 2)
  const needs = [{ limiter: 'permits:db', amount: 1 }]
  await addSeveral('a', 3)
  await addSeveral('a', 4, { needs })
  await addSeveral('b', 5, { needs })
  await addSeveral(NO_KEY, 9, { needs })
  const listing = await page('backlog')
  expect(listing.keys.map(({ key, waiting }) => [key, waiting])).toEqual([
    ['a', 7],
    ['b', 5],
  ])
  expect(listing).toMatchObject({ waitingKeys: 2, waitingTasks: 12, exact: true })
  expect(await allKeys('backlog', 1)).toEqual(['a', 'b'])
  await start(3)
  expect(await one('a')).toMatchObject({ waiting: 5, active: 2 })
  expect((await page('active')).keys.map(({ key, active }) => [key, active])).toEqual([['a', 2]])
})

it('the waiting tasks of a key that depend on a service are counted before any of them has started', async () => {
  const { addSeveral, page, redis, keys } = await listed()
  await defineBreakers(runnerOn(redis), keys, { smtp: DEFAULT_BREAKER }, { replaces: true })
  await addSeveral('a', 3, { services: ['smtp'] })
  expect((await page('backlog')).keys.map(({ key, waiting }) => [key, waiting])).toEqual([['a', 3]])
})

it('the active tasks of a queue without limits are counted up to a bound', async () => {
  const { page, one, redis, keys } = await listed()
  const pipeline = redis.pipeline()
  for (let i = 0; i < 1_500; i++) {
    pipeline.lpush(keys.active, `t${i}`).hset(keys.job(`t${i}`), 'lane', `1 ${i < 1_200 ? 'a' : 'b'}`)
  }
  await pipeline.exec()
  expect((await page('active')).keys.map(({ key, active }) => [key, active])).toEqual([
    ['a', 1_200],
    ['b', 300],
  ])
  expect(await one('b')).toMatchObject({ active: 300, concurrency: undefined, blockedBy: [] })
  expect((await page('active')).exact).toBe(true)
  await redis.lpush(keys.active, ...Array.from({ length: 8_501 }, (_, i) => `u${i}`))
  expect((await page('active')).exact).toBe(false)
})
