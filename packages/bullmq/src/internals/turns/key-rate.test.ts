// How many tasks of a concurrency key start per period, on a real Redis.
import type { StartRate } from '@bullpen/contract'
import { afterStart, nextStart } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { long, setup } from '../../setup.fixture.ts'
import { luaInclude } from '../../store/scripts.ts'
import { NO_KEY, stage } from './stage.fixture.ts'

const HOUR = 3_600_000
/** One start every ten minutes. */
const SLOW = { max: 6, perMs: HOUR, burst: 1 }

it('a key starts as many tasks at once as its burst says, and the next one an interval later', async () => {
  const { addSeveral, limit, startAll, keysOf, redis, keys, violations } = await stage()
  await limit({ rate: SLOW })
  await limit({ rate: { ...SLOW, burst: 3 } }, 'b')
  await addSeveral('a', 5)
  await addSeveral('b', 5)
  await addSeveral(NO_KEY, 2)
  const before = Date.now()
  expect(
    keysOf(await startAll())
      .split(' ')
      .toSorted()
      .join(' '),
  ).toBe('- - a b b b')
  for (const key of ['a', 'b']) {
    const waitMs = Number(await redis.zscore(keys.laneTimes, key)) - before
    // The clocks of Redis and of this process may differ slightly.
    expect(Math.abs(waitMs - HOUR / 6)).toBeLessThan(30_000)
  }
  expect(await violations()).toEqual([])
})

it('a task that ends or is requeued has used its share', async () => {
  const { addSeveral, limit, start, startAll, complete, end } = await stage()
  await limit({ rate: { ...SLOW, burst: 2 } })
  await addSeveral('a', 5)
  await start(2)
  await complete({ fetches: true })
  await end(
    1,
    () => ({ kind: 'requeued', throttleMs: undefined }),
    async () => undefined,
  )
  expect(await startAll()).toEqual([])
})

it('a rate with an interval that is too short for the clock limits nothing', async () => {
  const { addSeveral, limit, startAll, violations } = await stage()
  await limit({ rate: { max: 1_000_000_000, perMs: 1, burst: 1 } })
  const ids = await addSeveral('a', 3)
  expect(await startAll()).toEqual(ids)
  expect(await violations()).toEqual([])
})

it('a higher rate applies at once, also to a key that has used up its rate for a long time', async () => {
  const { addSeveral, limit, start, startAll, violations } = await stage()
  await limit({ rate: SLOW })
  await addSeveral('a', 5)
  await start(1)
  expect(await startAll()).toEqual([])
  await limit({ rate: { max: 1_000, perMs: 1, burst: 10 } })
  expect(await violations()).toEqual([])
  await eventually(async () => (await startAll(1)).length > 0)
  expect(await violations()).toEqual([])
})

it('a key that has started nothing for some time has its burst again', async () => {
  const { addSeveral, limit, start, startAll, redis, keys, violations } = await stage()
  await limit({ rate: { max: 10, perMs: 1_000, burst: 2 } })
  await addSeveral('a', 50)
  while ((await startAll()).length > 0);
  await eventually(async () => (await redis.exists(keys.keyRate('a'))) === 0)
  await start(1)
  // It could start another one.
  expect(await redis.exists(keys.laneTimes, keys.blockedLanes)).toBe(0)
  expect(await violations()).toEqual([])
})

it('a key without a rate starts everything again, and nothing is stored about its times', async () => {
  const { addSeveral, limit, start, startAll, redis, keys, violations } = await stage()
  await limit({ rate: SLOW })
  await addSeveral('a', 5)
  await start(1)
  expect(await startAll()).toEqual([])
  await limit({ rate: 'none' })
  expect(await startAll()).toHaveLength(4)
  expect(await redis.exists(keys.laneTimes, keys.blockedLanes, keys.keyLimits)).toBe(0)
  expect(await violations()).toEqual([])
})

it('both limits of a key apply', async () => {
  const { addSeveral, limit, startAll, complete, redis, keys, violations } = await stage()
  await limit({ concurrency: 1, rate: { ...SLOW, burst: 2 } })
  await addSeveral('a', 5)
  expect(await startAll()).toHaveLength(1)
  await complete()
  expect(await startAll()).toHaveLength(1)
  // The place that is free again does not let the key start a task before its time.
  await complete()
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([])
  expect(await redis.zscore(keys.laneTimes, 'a')).not.toBeNull()
})

it('an idle worker learns when the next task may start, and before that nothing wakes it', async () => {
  const { addSeveral, limit, start, startAll, redis, keys, queue } = await stage()
  await limit({ rate: SLOW })
  await addSeveral('a', 3)
  await start(1)
  await redis.del(keys.marker)
  expect(await startAll()).toEqual([])
  expect(await redis.exists(keys.marker)).toBe(0)
  // A delayed job's marker is at the time of the earlier of the two.
  await queue.add('later', {}, { delay: 10 * HOUR })
  expect(await redis.zscore(keys.marker, '1')).toBe(await redis.zscore(keys.laneTimes, 'a'))
  await queue.add('soon', {}, { delay: 60_000 })
  expect(Number(await redis.zscore(keys.marker, '1'))).toBeLessThan(Number(await redis.zscore(keys.laneTimes, 'a')))
})

it('idle workers start the tasks of a key when its rate allows it', async () => {
  // The limits of the workers' catalogue.
  const keyLimits = { rate: { max: 20, perMs: 1_000, burst: 1 }, keys: {} }
  const { enqueue, startPool, settled } = await setup({ concurrency: 5, keyLimits })
  await startPool()
  const before = performance.now()
  const ids = await Promise.all(Array.from({ length: 5 }, () => enqueue(long, { turn: { key: 'a', weight: 1 } })))
  for (const id of ids) expect((await settled(id))?.status).toBe('completed')
  // Four intervals of 50 ms. Clocks may differ by a few milliseconds.
  expect(performance.now() - before).toBeGreaterThan(190)
})

it('a worker that runs only some tasks learns when the rate of a key allows the next start', async () => {
  const { addSeveral, limit, startOnly, redis, keys, violations } = await stage()
  await limit({ rate: SLOW })
  const ids = await addSeveral('a', 3)
  expect(await startOnly(ids)).toHaveLength(1)
  expect(Number(await redis.zscore(keys.laneTimes, 'a'))).toBeGreaterThan(Date.now())
  expect(await violations()).toEqual([])
})

it('a worker that runs only some tasks does not wait for a time that has passed', async () => {
  const { addSeveral, limit, start, startAll, startOnly, redis, keys, violations } = await stage()
  await limit({ rate: SLOW })
  await addSeveral('a', 3)
  await start(1)
  expect(await startAll()).toEqual([])
  await redis.zadd(keys.laneTimes, 1, 'a')
  expect(await startOnly([])).toEqual([])
  // A worker that fetches takes the smallest of these times as the time at which it fetches again.
  expect(await redis.zrangebyscore(keys.laneTimes, 0, Date.now())).toEqual([])
  expect(await redis.exists(keys.marker)).toBe(1)
  expect(await violations()).toEqual([])
})

/**
 * Runs the scripts' own functions on a clock that the test moves. Returns for each time when a task may start, and what is
 * stored then.
 */
const RATE_ALONE = `
local stored, time, base, found = false, 0, '', {}
local redis = {}
function redis.call(command, _, value)
  if command == 'TIME' then return { math.floor(time / 1000), time % 1000 * 1000 } end
  if command == 'GET' then return stored end
  stored = value
end
${luaInclude('key-limits')}
for i = 2, #ARGV do
  time = tonumber(ARGV[i])
  local rate = open_rate('a', ARGV[1])
  local starts_at = key_starts_at('a', rate, false)
  local may_start = not starts_at
  if may_start then
    count_key_start(rate)
    starts_at = key_starts_at('a', rate, false)
  end
  found[#found + 1] = cjson.encode({ may_start, starts_at or 0, stored })
end
return found`

it("Redis's scripts compute the same times as the in-memory broker", async () => {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const rates: fc.Arbitrary<StartRate> = fc.record({
    max: fc.integer({ min: 1, max: 1_000 }),
    perMs: fc.constantFrom(1, 1_000, 60_000, HOUR),
    burst: fc.integer({ min: 1, max: 20 }),
  })
  const gaps = fc.array(fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: HOUR })), { minLength: 1, maxLength: 50 })
  const run = async (rate: StartRate, waits: readonly number[]) => {
    let now = 1_800_000_000_000
    const times = waits.map((wait) => (now += wait))
    const found = await redis.eval(RATE_ALONE, 0, `${rate.max}/${rate.perMs}/${rate.burst}`, ...times)
    let dueAt: number | undefined
    for (const [i, time] of times.entries()) {
      const next = nextStart(rate, dueAt, time)
      const mayStart = next.startsAt === undefined
      const { startsAt, dueAt: due } = mayStart ? afterStart(rate, dueAt, time) : next
      if (mayStart) dueAt = Number(due.toFixed(3))
      expect(JSON.parse((found as string[])[i] ?? '')).toEqual([mayStart, startsAt ?? 0, dueAt?.toFixed(3)])
    }
  }
  await fc.assert(fc.asyncProperty(rates, gaps, run), { numRuns: 100 })
})

it('a worker that runs only some tasks does not move the pass at which other keys join', async () => {
  const { add, addSeveral, limit, start, startOnly, redis, keys, keysOf } = await stage()
  await limit({ rate: { max: 1, perMs: 3_600_000, burst: 20 } }, 'a')
  const ids = await addSeveral('a', 21)
  await addSeveral('b', 10)
  expect(await start(2)).toHaveLength(2)
  // These starts are no turns. The last one uses up the rate of the key.
  expect(await startOnly(ids)).toHaveLength(19)
  expect(await redis.zrange(keys.blockedLanes, '0', '-1')).toEqual(['a'])
  await add('c')
  expect(keysOf(await start(3))).toContain('c')
})
