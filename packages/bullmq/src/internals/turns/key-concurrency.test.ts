// How many tasks of a concurrency key are active at once, on a real Redis.
import { TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { Job } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../../keys.ts'
import { lockTask, unlockTasks } from '../../locks/stored-lock.fixture.ts'
import { runScript } from '../../scripts/script.ts'
import { long, setup } from '../../setup.fixture.ts'
import { countActiveScript } from '../../store/scripts.ts'
import { NO_KEY, stage } from './stage.fixture.ts'

it('a key has as many active tasks as its limit says, and the other keys go on', async () => {
  const { addSeveral, limit, startAll, keysOf, violations } = await stage()
  await limit({ concurrency: 2 })
  await limit({ concurrency: 3 }, 'b')
  await addSeveral('a', 10)
  await addSeveral('b', 10)
  await addSeveral(NO_KEY, 3)
  expect(
    keysOf(await startAll())
      .split(' ')
      .toSorted()
      .join(' '),
  ).toBe('- - - a a b b b')
  expect(await violations()).toEqual([])
})

it('the script that ends a task starts the next one of the same key', async () => {
  const { addSeveral, limit, start, startAll, complete, redis, keys } = await stage()
  await limit({ concurrency: 1 })
  const [first, second] = await addSeveral('a', 3)
  expect(await start(1)).toEqual([first])
  expect(await startAll()).toEqual([])
  expect(await complete({ fetches: true })).toBe(true)
  expect(await redis.lrange(keys.active, 0, -1)).toEqual([second])
})

it('the tasks of a full key wake no worker, and one does when a task of the key ends', async () => {
  const { addSeveral, limit, start, startAll, complete, redis, keys } = await stage()
  await limit({ concurrency: 1 })
  await addSeveral('a', 100)
  await start(1)
  // The start of the only task that may start leaves no marker, and neither do tasks that are added later.
  expect(await redis.exists(keys.marker, keys.turns)).toBe(0)
  await addSeveral('a', 2)
  await addSeveral('a', 2, { priority: 3 })
  expect(await redis.exists(keys.marker)).toBe(0)
  expect(await startAll()).toEqual([])
  await complete()
  expect(await redis.zscore(keys.marker, '0')).toBe('0')
})

it('the start of a task wakes a worker if another task may start, or if a worker has to know a time', async () => {
  const { add, addSeveral, limit, start, redis, keys } = await stage()
  await limit({ concurrency: 1 })
  await limit({ rate: { max: 1, perMs: 3_600_000, burst: 1 } }, 'slow')
  const startsWithMarker = async (): Promise<boolean> => {
    await redis.del(keys.marker)
    await start(1)
    return (await redis.zscore(keys.marker, '0')) !== null
  }
  await addSeveral('a', 2)
  await addSeveral('b', 2)
  expect([await startsWithMarker(), await startsWithMarker()]).toEqual([true, false])
  await addSeveral(NO_KEY, 2)
  expect([await startsWithMarker(), await startsWithMarker()]).toEqual([true, true])
  await add('c', { delayMs: 3_600_000 })
  await add('d')
  expect(await startsWithMarker()).toBe(true)
  await addSeveral('slow', 2)
  expect(await startsWithMarker()).toBe(true)
  await add('slow')
  expect(await redis.zscore(keys.marker, '0')).toBe('0')
})

it('a key that was full for a long time gets no more than its turn', async () => {
  const { addSeveral, limit, start, complete, keysOf } = await stage()
  await limit({ concurrency: 1 }, 'full')
  await addSeveral('full', 10)
  await addSeveral('b', 40)
  await start(20)
  await limit({ concurrency: 'none' }, 'full')
  expect(keysOf(await start(6)).match(/full/g)).toHaveLength(3)
  await complete()
})

it('a new key takes turns with keys that return from their limits', async () => {
  const { addSeveral, limit, start, startAll, complete, keysOf } = await stage()
  await addSeveral('a', 60)
  await start(30)
  await limit({ concurrency: 1 })
  await startAll()
  await addSeveral('new', 20)
  await startAll()
  for (let i = 0; i < 32; i++) await complete()
  await limit({ concurrency: 'none' })
  expect(keysOf(await start(8))).toBe('a a new a new a new a')
})

it.each(['requeued', 'snoozed', 'retrying', 'dead'] as const)('a %s task gives its place back', async (kind) => {
  const { addSeveral, limit, start, startAll, end, violations } = await stage()
  await limit({ concurrency: 1 })
  const [first, second] = await addSeveral('a', 2, { maxAttempts: 3 })
  await start(1)
  await end(
    1,
    () => {
      if (kind === 'requeued') return { kind, throttleMs: undefined }
      return kind === 'dead' ? { kind } : { kind, delayMs: 60_000 }
    },
    async () => undefined,
  )
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([kind === 'requeued' ? first : second])
})

it('a task whose worker was lost gives its place back, and the refused end of the lost attempt gives nothing back', async () => {
  const { addSeveral, limit, start, startAll, end, redis, keys, checkForLost, violations } = await stage()
  await limit({ concurrency: 2 })
  const [first = ''] = await addSeveral('a', 5)
  await start(2)
  await unlockTasks(redis, keys, first)
  await checkForLost()
  expect(await redis.zscore(keys.activeByKey, 'a')).toBe('1')
  expect(await startAll()).toEqual([first])
  // The lost worker comes back.
  await end(
    1,
    () => ({ kind: 'completed', output: {} }),
    async () => undefined,
    (id) => lockTask(redis, keys, id, 'another worker', 5_000),
  )
  expect(await redis.zscore(keys.activeByKey, 'a')).toBe('2')
  expect(await violations()).toEqual([])
})

it('a limit also counts the tasks that already run, and stops none of them', async () => {
  const { addSeveral, limit, start, startAll, complete, violations } = await stage()
  await addSeveral('a', 10)
  await start(4)
  await limit({ concurrency: 3 })
  expect(await startAll()).toEqual([])
  await complete()
  expect(await startAll()).toEqual([])
  await complete()
  expect(await startAll()).toHaveLength(1)
  await limit({ concurrency: 5 })
  expect(await startAll()).toHaveLength(2)
  expect(await violations()).toEqual([])
})

it('a queue whose last limit was removed starts everything, and stores nothing about limits', async () => {
  const { addSeveral, limit, startAll, redis, keys } = await stage()
  await limit({ concurrency: 1 })
  await limit({ concurrency: 0 }, 'b')
  await addSeveral('a', 3)
  await addSeveral('b', 3)
  expect(await startAll()).toHaveLength(1)
  await limit({ concurrency: 'none' })
  await limit({ concurrency: 'none' }, 'b')
  expect(await startAll()).toHaveLength(5)
  expect(await redis.exists(keys.keyLimits, keys.activeByKey, keys.blockedLanes)).toBe(0)
})

it('a key with the limit 0 starts nothing', async () => {
  const { addSeveral, limit, startAll, keysOf, violations } = await stage()
  await limit({ concurrency: 0 }, 'stopped')
  await addSeveral('stopped', 3)
  await addSeveral('a', 3)
  expect(keysOf(await startAll())).toBe('a a a')
  expect(await violations()).toEqual([])
})

it('a task of a full key is cancelled, and the rest of its lane starts later', async () => {
  const { addSeveral, limit, start, startAll, complete, broker, violations } = await stage()
  await limit({ concurrency: 1 })
  const [, second, third] = await addSeveral('a', 3)
  await start(1)
  expect(await broker.cancel(second as never, { stoppable: false })).toBe('cancelled')
  await complete()
  expect(await startAll()).toEqual([third])
  expect(await violations()).toEqual([])
})

it('a task of a key that is in the waiting list is counted, too', async () => {
  const { add, addSeveral, limit, start, startAll, redis, keys, violations } = await stage()
  await limit({ concurrency: 1 })
  // As a Worker with BullMQ's own backend returns it.
  const stray = await add('a')
  await start(1)
  await redis.lrem(keys.active, 1, stray)
  await redis.zrem(keys.activeByKey, 'a')
  await redis.rpush(keys.wait, stray)
  expect(await startAll()).toEqual([stray])
  await addSeveral('a', 2)
  expect(await startAll()).toEqual([])
  expect(await violations()).toEqual([])
})

it('a worker that runs only some tasks keeps to the limits of their keys', async () => {
  const { addSeveral, limit, startAll, startOnly, keysOf, violations } = await stage()
  await limit({ concurrency: 1 })
  await limit({ concurrency: 3, rate: { max: 1, perMs: 3_600_000, burst: 2 } }, 'b')
  const ids = [...(await addSeveral('a', 3)), ...(await addSeveral('b', 3))]
  const started = await startOnly(ids)
  expect(keysOf(started)).toBe('a b b')
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([])
  expect(await violations()).toEqual([])
})

it("the leader's count corrects what another tool has done to active tasks", async () => {
  const { addSeveral, limit, start, startAll, redis, keys, violations } = await stage()
  await limit({ concurrency: 2 })
  const [first = ''] = await addSeveral('a', 5)
  await start(2)
  const count = () => runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })
  expect(await count()).toBe(0)
  await redis.del(keys.job(first))
  await redis.lrem(keys.active, 1, first)
  // The count, and the lane that is blocked because of it.
  expect(await count()).toBe(2)
  expect(await violations()).toEqual([])
  expect(await startAll()).toHaveLength(1)
  expect(await redis.hget(keys.totals, 'drift')).toBe('2')
})

it("the leader's count examines some of the blocked lanes, and those of the keys whose counts were wrong", async () => {
  const { addSeveral, limit, start, startAll, redis, keys } = await stage()
  await limit({ concurrency: 1 })
  const [first = '', second] = await addSeveral('a', 2)
  await start(1)
  expect(await startAll()).toEqual([])
  const others = Array.from({ length: 2_500 }, (_, i) => `key${i}`)
  await redis.hset(keys.keyLimits, Object.fromEntries(others.map((key) => [`concurrency:${key}`, '0'])))
  await redis.zadd(keys.blockedLanes, ...others.flatMap((key) => [1, key]))
  const count = () => runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })
  expect(await count()).toBe(0)
  await redis.del(keys.job(first))
  await redis.lrem(keys.active, 1, first)
  // The count and the lane.
  expect(await count()).toBe(2)
  expect(await start(1)).toEqual([second])
  await redis.zrem(keys.blockedLanes, 'a')
  await redis.hdel(keys.keyLimits, ...others.map((key) => `concurrency:${key}`))
  const found: number[] = []
  for (let i = 0; i < 4; i++) found.push(await count())
  expect(found).toEqual([1_000, 1_000, 500, 0])
})

it("a team's own Queue that removes active tasks gives their places back", async () => {
  const { addSeveral, limit, start, queue, redis, keys, violations } = await stage()
  await limit({ concurrency: 3 })
  const [first = '', ...others] = await addSeveral('a', 6)
  await start(3)
  for (const id of [first, ...others]) await unlockTasks(redis, keys, id)
  await (await Job.fromId(queue, first))?.remove()
  expect(await redis.zscore(keys.activeByKey, 'a')).toBe('2')
  await queue.clean(0, 1, 'active')
  expect(await redis.zscore(keys.activeByKey, 'a')).toBe('1')
  expect(await violations()).toEqual([])
  await queue.obliterate({ force: true })
  expect(await redis.exists(keys.activeByKey, keys.blockedLanes, keys.turns)).toBe(0)
})

it('several workers keep to the limits, also with the tasks of one that died, and run every task', async () => {
  const limits: Readonly<Record<string, number>> = { a: 1, b: 2, c: 2, d: 3 }
  const keyOf = (n: number): string => ['a', 'b', 'c', 'd'][n % 4] ?? ''
  const running = new Map<string, number>()
  const exceeded: string[] = []
  const gate = Promise.withResolvers<void>()
  let isGated = true
  const rig = await setup({
    concurrency: 10,
    roundMs: 50,
    locks: { lockMs: 30_000, renewalMs: 200 },
    keyLimits: { concurrency: 2, keys: { a: { concurrency: 1 }, d: { concurrency: 3 } } },
    async handle({ input, fencingToken }) {
      const key = keyOf(input.n)
      const now = (running.get(key) ?? 0) + 1
      running.set(key, now)
      if (now > (limits[key] ?? 0)) exceeded.push(key)
      if (isGated) await gate.promise
      else await new Promise((resolve) => setTimeout(resolve, input.n % 5))
      running.set(key, (running.get(key) ?? 0) - 1)
      if (input.n % 6 === 0 && fencingToken === 1) throw new TaskError('flaky', 'flaky')
      return input
    },
  })
  onTestFinished(() => gate.resolve())
  const { startPool, enqueue, settled, kill, namespace, redisUrl } = rig
  const ids: TaskId[] = []
  for (let n = 0; n < 60; n++) ids.push(await enqueue(long, { input: { n }, turn: { key: keyOf(n), weight: 1 } }))
  await startPool()
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(namespace, 'rig')
  await eventually(() => [...running.values()].reduce((sum, count) => sum + count, 0) === 8)
  await kill(0, (await redis.lrange(keys.active, 0, -1)) as TaskId[])
  running.clear()
  isGated = false
  await startPool()
  await startPool()
  for (const id of ids) expect((await settled(id))?.status).toBe('completed')
  expect(exceeded).toEqual([])
  expect(await redis.exists(keys.activeByKey, keys.blockedLanes)).toBe(0)
  expect(Number((await redis.hget(keys.totals, 'drift')) ?? 0)).toBe(0)
})

it('an obliteration that BullMQ refuses leaves the tasks in their lanes', async () => {
  const { addSeveral, limit, start, startAll, queue, redis, keys, keysOf, violations } = await stage()
  await limit({ concurrency: 1 })
  await addSeveral('a', 3)
  await addSeveral('b', 2)
  await start(1)
  await expect(queue.obliterate()).rejects.toThrow('active jobs')
  expect(await redis.llen(keys.wait)).toBe(0)
  await queue.resume()
  expect(keysOf(await startAll())).toBe('b')
  expect(await violations()).toEqual([])
  await queue.obliterate({ force: true })
  expect(await redis.exists(keys.lanes, keys.turns, keys.wait)).toBe(0)
})

it('a task with a lane that another tool has put into the waiting list starts from its lane', async () => {
  const { addSeveral, limit, start, startAll, complete, redis, keys, keysOf, violations } = await stage()
  await limit({ concurrency: 1 })
  await addSeveral('a', 3)
  await start(1)
  await addSeveral(NO_KEY, 2)
  // As the check for lost tasks of a Worker with BullMQ's own backend does.
  const stray = (await redis.rpop(keys.lane('a'))) ?? ''
  await redis.hincrby(keys.turnState, 'waiting', -1)
  await redis.rpush(keys.wait, stray)
  await redis.hset(keys.cancelRules, 'r', '{}')
  expect(keysOf(await startAll())).toBe('- -')
  expect(await violations()).toEqual([])
  // The scan of a cancel by filter visits the lanes before the waiting list.
  expect(await redis.smembers(keys.cancelReturned)).toEqual([stray])
  while (await complete());
  expect(await startAll()).toEqual([stray])
})
