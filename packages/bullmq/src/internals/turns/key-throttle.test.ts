// A concurrency key that a handler has throttled, on a real Redis.
import { expect, it } from 'vitest'
import { surveyQueue } from '../../leader/survey.ts'
import { NO_KEY, stage } from './stage.fixture.ts'

const HOUR = 3_600_000

it('a throttled key starts nothing, and the other keys go on', async () => {
  const { addSeveral, start, startAll, throttle, keysOf, broker, redis, keys, violations } = await stage()
  await addSeveral('a', 3)
  const [first = ''] = await start(1)
  await addSeveral('b', 3)
  await addSeveral(NO_KEY, 1)
  expect(await throttle(first, HOUR)).toBe(true)
  expect(
    keysOf(await startAll())
      .split(' ')
      .toSorted()
      .join(' '),
  ).toBe('- b b b')
  // Also a task that is added later.
  const [later] = await addSeveral('a', 1)
  expect(await startAll()).toEqual([])
  const until = Number(await redis.zscore(keys.keyThrottles, 'a'))
  expect((await broker.find(later as never))?.waitsFor).toEqual({ kind: 'rate', ahead: 2, until })
  // An idle worker wakes then, and not before.
  expect(await redis.zscore(keys.laneTimes, 'a')).toBe(`${until}`)
  await redis.del(keys.marker)
  expect(await startAll()).toEqual([])
  expect(await redis.exists(keys.marker)).toBe(0)
  expect(await violations()).toEqual([])
})

it('a further throttle may extend the first one but never shortens it', async () => {
  const { addSeveral, start, throttle, redis, keys } = await stage()
  await addSeveral('a', 3)
  await addSeveral('b', 1)
  const [first = '', second = ''] = await start(2)
  await throttle(first, HOUR)
  const until = await redis.zscore(keys.keyThrottles, 'a')
  await throttle(first, 1_000)
  await throttle(second, 2_000)
  expect(await redis.zscore(keys.keyThrottles, 'a')).toBe(until)
  // The set expires with its last throttle, not with the newest.
  expect(await redis.pexpiretime(keys.keyThrottles)).toBe(Number(until))
  await throttle(first, 2 * HOUR)
  expect(Number(await redis.zscore(keys.keyThrottles, 'a'))).toBeGreaterThan(Number(until) + HOUR / 2)
})

it('a throttled key stays throttled if its limits change, if its rate allows a start, and if no task waits', async () => {
  const { addSeveral, limit, start, startAll, complete, throttle, broker, redis, keys, violations } = await stage()
  const [first = '', second] = await addSeveral('a', 2)
  await start(1)
  await throttle(first, HOUR)
  expect(await startAll()).toEqual([])
  await limit({ concurrency: 3, rate: { max: 1_000, perMs: 1, burst: 10 } })
  expect(await startAll()).toEqual([])
  await limit({ concurrency: 'none', rate: 'none' })
  expect(await startAll()).toEqual([])
  expect(await broker.cancel(second as never, { stoppable: false })).toBe('cancelled')
  await complete({ fetches: true })
  const now = Date.now()
  await surveyQueue(redis, keys, { fencing: 1, now, retention: '', compareEveryMs: HOUR, eventsSince: undefined })
  await addSeveral('a', 1)
  expect(await startAll()).toEqual([])
  expect(await violations()).toEqual([])
})

it('a key whose throttle has ended gets no more than its turn', async () => {
  const { addSeveral, start, startAll, throttle, keysOf, redis, keys, violations } = await stage()
  await addSeveral('a', 10)
  const [first = ''] = await start(1)
  await throttle(first, HOUR)
  await addSeveral('b', 20)
  await start(10)
  // As if the throttle had ended.
  await redis.del(keys.keyThrottles)
  await redis.zadd(keys.laneTimes, 1, 'a')
  expect(keysOf(await start(6)).match(/a/g)).toHaveLength(3)
  expect(await startAll()).toHaveLength(13)
  expect(await redis.exists(keys.blockedLanes, keys.laneTimes)).toBe(0)
  expect(await violations()).toEqual([])
})

it('a worker that runs only some tasks starts none of a throttled key', async () => {
  const { addSeveral, start, startOnly, throttle, keysOf, violations } = await stage()
  const ids = [...(await addSeveral('a', 3)), ...(await addSeveral('b', 2))]
  const [first = ''] = await start(1)
  await throttle(first, HOUR)
  expect(keysOf(await startOnly(ids))).toBe('b b')
  expect(await violations()).toEqual([])
})

it('a task without a turn throttles no key', async () => {
  const { add, start, throttle, redis, keys } = await stage()
  await add(NO_KEY)
  const [id = ''] = await start(1)
  expect(await throttle(id, HOUR)).toBe(false)
  expect(await redis.exists(keys.keyThrottles)).toBe(0)
})
