// What tasks need of the limiters of their queue: permits, and a place among the tasks of their definition.
import { TaskError, type TaskId } from '@bullpen/contract'
import type { Need } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { Job } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../../../keys.ts'
import { lockTask, unlockTasks } from '../../../locks/stored-lock.fixture.ts'
import { runScript } from '../../../scripts/script.ts'
import { long, setup } from '../../../setup.fixture.ts'
import { countActiveScript } from '../../../store/scripts.ts'
import { NO_KEY, stage } from '../stage.fixture.ts'

const db = (amount: number): Need => ({ limiter: 'permits:db', amount })
const gpu = (amount: number): Need => ({ limiter: 'permits:gpu', amount })

/** A queue with 3 permits for a database and 1 for a GPU. */
async function limited() {
  const world = await stage()
  const { addSeveral, setCapacity, redis, keys } = world
  await setCapacity('permits:db', 3)
  await setCapacity('permits:gpu', 1)
  return {
    ...world,
    /** Adds tasks without a concurrency key. */
    need: (needs: readonly Need[], count = 1, given = {}) => addSeveral(NO_KEY, count, { needs, ...given }),
    inUse: (limiter = 'permits:db') => redis.zscore(keys.inUse, limiter).then(Number),
  }
}

it('a task starts if all permits that it needs are free, and gives them back when it ends', async () => {
  const { need, startAll, complete, inUse, violations } = await limited()
  const [first, second, third] = await need([db(2)], 3)
  const [both] = await need([db(1), gpu(1)])
  expect(await startAll()).toEqual([first, both])
  expect([await inUse(), await inUse('permits:gpu')]).toEqual([3, 1])
  expect(await violations()).toEqual([])
  await complete()
  expect(await startAll()).toEqual([])
  expect([await inUse(), await inUse('permits:gpu')]).toEqual([2, 0])
  await complete()
  expect(await startAll()).toEqual([second])
  await complete()
  expect(await startAll()).toEqual([third])
  await complete()
  expect([await inUse(), await inUse('permits:gpu')]).toEqual([0, 0])
})

it('the script that ends a task starts the next one that needs its permits', async () => {
  const { need, start, startAll, complete, redis, keys } = await limited()
  const [first, second] = await need([gpu(1)], 3)
  expect(await start(1)).toEqual([first])
  expect(await startAll()).toEqual([])
  expect(await complete({ fetches: true })).toBe(true)
  expect(await redis.lrange(keys.active, 0, -1)).toEqual([second])
})

it('tasks that need other permits, or none, do not wait behind tasks that may not start', async () => {
  const { need, startAll, addSeveral, redis, keys } = await limited()
  await need([gpu(1)], 50)
  await startAll()
  const [free] = await need([db(1)])
  const [none] = await addSeveral(NO_KEY, 1)
  expect((await startAll()).toSorted()).toEqual([free, none].toSorted())
  await redis.del(keys.marker)
  expect(await startAll()).toEqual([])
  expect(await redis.exists(keys.marker)).toBe(0)
})

it('a task that needs many permits starts before tasks that came later and need few', async () => {
  const { need, start, startAll, complete, violations } = await limited()
  await need([db(1)], 3)
  await start(3)
  const [large] = await need([db(3)])
  expect(await startAll()).toEqual([])
  const small = await need([db(1)], 5)
  for (let i = 0; i < 2; i++) {
    await complete()
    expect(await startAll()).toEqual([])
    expect(await violations()).toEqual([])
  }
  await complete()
  expect(await startAll()).toEqual([large])
  await complete()
  expect(await startAll()).toEqual(small.slice(0, 3))
})

it('a task that waits before all others starts before those that came later, also if they need other amounts', async () => {
  const { need, startAll, complete } = await limited()
  await need([db(2)])
  // The last fetch has found no waiting task, so the turns begin again.
  await startAll()
  const [large] = await need([db(2)])
  expect(await startAll()).toEqual([])
  const [small] = await need([db(1)])
  expect(await startAll()).toEqual([])
  await complete()
  expect(await startAll()).toEqual([large, small])
})

it('a task that needs several permits is not starved by tasks that need one of them each', async () => {
  const { need, start, startAll, complete, violations } = await limited()
  const [first] = await need([gpu(1)])
  await need([db(1)], 3)
  await start(4)
  const [both] = await need([db(3), gpu(1)])
  await startAll()
  await need([db(1)], 20)
  await need([gpu(1)], 20)
  const started: string[] = []
  // Of the tasks that run, the oldest one ends first.
  for (let i = 0; i < 4; i++) {
    await complete()
    started.push(...(await startAll()))
    expect(await violations()).toEqual([])
  }
  expect(first).toBeDefined()
  expect(started).toEqual([both])
})

it('a task that needs more permits than there are does not delay others, and starts when there are enough', async () => {
  const { need, startAll, complete, setCapacity, violations } = await limited()
  const [large] = await need([db(4)])
  const small = await need([db(1)], 3)
  expect(await startAll()).toEqual(small)
  await setCapacity('permits:db', 4)
  for (let i = 0; i < 3; i++) await complete()
  expect(await startAll()).toEqual([large])
  expect(await violations()).toEqual([])
})

it('a task that waits for two limiters no longer delays others at one of them once the other can never have enough', async () => {
  const { need, start, startAll, complete, setCapacity, violations } = await limited()
  await need([db(3)])
  await need([gpu(1)])
  await start(2)
  await need([db(2), gpu(1)])
  const [other] = await need([db(1)])
  expect(await startAll()).toEqual([])
  await setCapacity('permits:gpu', 0)
  await complete()
  expect(await startAll()).toEqual([])
  await complete()
  expect(await startAll()).toEqual([other])
  expect(await violations()).toEqual([])
})

it('the number of permits can change while tasks run and wait', async () => {
  const { need, startAll, complete, setCapacity, inUse, violations } = await limited()
  const ids = await need([db(1)], 20)
  await startAll()
  await setCapacity('permits:db', 10)
  expect(await startAll()).toEqual(ids.slice(3, 10))
  await setCapacity('permits:db', 2)
  for (let i = 0; i < 8; i++) await complete()
  expect(await startAll()).toEqual([])
  await complete()
  expect(await startAll()).toEqual([ids[10]])
  await setCapacity('permits:db', 0)
  await complete()
  expect(await startAll()).toEqual([])
  await setCapacity('permits:db', 'none')
  expect(await startAll()).toEqual(ids.slice(11))
  expect(await inUse()).toBe(0)
  expect(await violations()).toEqual([])
})

it('the keys that wait for a permit take turns by their weights', async () => {
  const { addSeveral, startAll, complete, keysOf } = await limited()
  await addSeveral('noisy', 40, { needs: [gpu(1)] })
  await startAll()
  await addSeveral('small', 5, { needs: [gpu(1)] })
  await addSeveral('heavy', 12, { needs: [gpu(1)], weight: 3 })
  let started = ''
  for (let i = 0; i < 15; i++) {
    await complete()
    started += ` ${keysOf(await startAll())}`
  }
  expect(['noisy', 'small', 'heavy'].map((key) => started.split(key).length - 1)).toEqual([3, 3, 9])
})

it('a key whose tasks need different permits gets no more turns than one whose tasks need the same', async () => {
  const { addSeveral, start, keysOf } = await stage()
  for (const needs of [[], [db(1)], [gpu(1)], [db(1), gpu(1)]]) await addSeveral('many', 20, { needs })
  await addSeveral('one', 40)
  // Each of the four lanes has had its first turn.
  await start(8)
  expect(keysOf(await start(20)).match(/one/g)).toHaveLength(10)
})

it('the limits of keys and of permits apply together', async () => {
  const { addSeveral, limit, startAll, complete, redis, keys, violations } = await limited()
  await limit({ concurrency: 1 })
  const [a1] = await addSeveral('a', 2, { needs: [db(1)] })
  const [a3] = await addSeveral('a', 1)
  const [b1] = await addSeveral('b', 2, { needs: [db(2)] })
  const [c1] = await addSeveral('c', 1, { needs: [db(1)] })
  expect((await startAll()).toSorted()).toEqual([a1, b1].toSorted())
  expect(await violations()).toEqual([])
  // The key starts its task that needs no permit, and the permit is free for another key.
  await complete({ fetches: true })
  await startAll()
  expect((await redis.lrange(keys.active, 0, -1)).toSorted()).toEqual([a3, b1, c1].toSorted())
  expect(await violations()).toEqual([])
})

it('a lane whose last waiting task is cancelled makes room for the lanes behind it', async () => {
  const { need, start, startAll, complete, broker, violations } = await limited()
  await need([db(1)], 3)
  await start(3)
  const [large = ''] = await need([db(3)])
  await startAll()
  const [small] = await need([db(1)])
  await complete()
  expect(await startAll()).toEqual([])
  expect(await broker.cancel(large as TaskId, { stoppable: false })).toBe('cancelled')
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([small])
})

it.each(['requeued', 'snoozed', 'retrying', 'dead'] as const)('a %s task gives its permits back', async (kind) => {
  const { need, start, startAll, end, inUse, violations } = await limited()
  const [first, second] = await need([db(3)], 2, { maxAttempts: 3 })
  await start(1)
  await end(
    1,
    () => {
      if (kind === 'requeued') return { kind, throttleMs: undefined }
      return kind === 'dead' ? { kind } : { kind, delayMs: 60_000 }
    },
    async () => undefined,
  )
  expect(await inUse()).toBe(0)
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([kind === 'requeued' ? first : second])
})

it('the permits of a lost worker come back, and the refused end of its attempt gives none back', async () => {
  const { need, start, startAll, end, redis, keys, checkForLost, inUse, violations } = await limited()
  const [first = '', second = ''] = await need([db(2)], 3)
  await start(1)
  await unlockTasks(redis, keys, first)
  await checkForLost()
  expect(await inUse()).toBe(0)
  expect(await startAll()).toEqual([first])
  await end(
    1,
    () => ({ kind: 'completed', output: {} }),
    async () => undefined,
    (id) => lockTask(redis, keys, id, 'another worker', 5_000),
  )
  expect(await inUse()).toBe(2)
  expect(second).toBeDefined()
  expect(await violations()).toEqual([])
})

it('a worker that runs only some tasks respects the permits', async () => {
  const { need, startAll, startOnly, inUse, violations } = await limited()
  const ids = await need([db(2)], 3)
  expect(await startOnly(ids)).toHaveLength(1)
  expect(await inUse()).toBe(2)
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([])
})

it('lanes do not wait for each other after a worker that runs only some tasks has started one out of turn', async () => {
  const { queue, add, startAll, startOnly, setCapacity, redis, keys, violations } = await limited()
  const complete = async (id: string): Promise<void> => {
    await lockTask(redis, keys, id, 'its worker')
    await (await Job.fromId(queue, id))?.moveToCompleted({}, 'its worker', false)
  }
  await setCapacity('permits:db', 1)
  const needs = [db(1), gpu(1)]
  const ofDb = await add('c', { needs: [db(1)] })
  expect(await startAll()).toEqual([ofDb])
  // The first key waits for one limiter, and the second one for both.
  const slow = { needs, weight: 0.1 }
  const [first, third] = [await add('a', slow), await add('a', slow)]
  expect(await startAll()).toEqual([])
  const ofGpu = await add('d', { needs: [gpu(1)] })
  expect(await startAll()).toEqual([ofGpu])
  const second = await add('b', { needs })
  expect(await startAll()).toEqual([])
  await complete(ofGpu)
  expect(await startAll()).toEqual([])
  await complete(ofDb)
  expect(await startOnly([first])).toEqual([first])
  expect(await startAll()).toEqual([])
  const [otherOfDb, otherOfGpu] = [await add('c', { needs: [db(1)] }), await add('d', { needs: [gpu(1)] })]
  await complete(first)
  expect(await startOnly([otherOfDb])).toEqual([otherOfDb])
  expect(await startOnly([otherOfGpu])).toEqual([otherOfGpu])
  for (const id of [otherOfDb, otherOfGpu]) {
    expect(await startAll()).toEqual([])
    await complete(id)
  }
  expect([[second], [third]]).toContainEqual(await startAll())
  expect(await violations()).toEqual([])
})

it('a task that another tool has added to the waiting list is counted, too', async () => {
  const { need, start, startAll, redis, keys, inUse, violations } = await limited()
  const [stray = ''] = await need([db(2)])
  await start(1)
  await redis.lrem(keys.active, 1, stray)
  await redis.zrem(keys.inUse, 'permits:db')
  await redis.rpush(keys.wait, stray)
  expect(await startAll()).toEqual([stray])
  expect(await inUse()).toBe(2)
  expect(await violations()).toEqual([])
})

it("the leader's count corrects what another tool has done, and wakes the tasks that wait", async () => {
  const { need, start, startAll, redis, keys, inUse, violations } = await limited()
  const [first = '', second] = await need([db(3)], 2)
  await start(1)
  expect(await startAll()).toEqual([])
  const count = () => runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })
  expect(await count()).toBe(0)
  await redis.del(keys.job(first))
  await redis.lrem(keys.active, 1, first)
  expect(await count()).toBe(1)
  expect(await inUse()).toBe(0)
  expect(await violations()).toEqual([])
  expect(await startAll()).toEqual([second])
})

it("the leader's count does not wake lanes that wait for their key behind another lane", async () => {
  const { addSeveral, limit, start, startAll, complete, redis, keys, violations } = await limited()
  await limit({ concurrency: 1 })
  await addSeveral('a', 1)
  await start(1)
  for (const needs of [[db(1)], [db(2)], [gpu(1)]]) await addSeveral('a', 1, { needs })
  expect(await startAll()).toEqual([])
  await complete()
  // The first lane has been woken. Each lane wakes the next one.
  expect(await redis.zcard(keys.blockedLanes)).toBe(2)
  expect(await runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })).toBe(0)
  expect(await violations()).toEqual([])
  for (let tasks = 3; tasks > 0; tasks--) {
    await start(1)
    await complete()
  }
})

it('a waiting task shows which limiter it waits for', async () => {
  const { need, startAll, broker } = await limited()
  await need([gpu(1)])
  await startAll()
  const [first, second] = await need([db(1), gpu(1)], 2)
  await startAll()
  expect((await broker.find(first as TaskId))?.waitsFor).toEqual({ kind: 'permits', limiter: 'gpu', ahead: 0 })
  expect((await broker.find(second as TaskId))?.waitsFor).toEqual({ kind: 'permits', limiter: 'gpu', ahead: 1 })
})

it('nothing is stored about limiters when the last task has ended', async () => {
  const { need, startAll, complete, redis, keys } = await limited()
  await need([db(2)], 2)
  await need([db(2), gpu(1)], 1)
  for (;;) {
    await startAll()
    if (!(await complete())) break
  }
  const { waitedNeeds, keyPasses, inUse, blockedLanes, turns } = keys
  expect(await redis.exists(waitedNeeds, keyPasses, inUse, blockedLanes, turns)).toBe(0)
  expect(await redis.keys(`${keys.base}need-waiters*`)).toEqual([])
})

it('several workers respect the permits, even after one of them has died, and run every task', async () => {
  let held = 0
  let most = 0
  let isGated = true
  const gate = Promise.withResolvers<void>()
  const needOf = (n: number): number => 1 + (n % 3)
  const rig = await setup({
    concurrency: 10,
    roundMs: 50,
    locks: { lockMs: 30_000, renewalMs: 200 },
    capacities: { 'permits:db': 4 },
    async handle({ input, fencingToken }) {
      held += needOf(input.n)
      most = Math.max(most, held)
      if (isGated) await gate.promise
      else await new Promise((resolve) => setTimeout(resolve, input.n % 5))
      held -= needOf(input.n)
      if (input.n % 6 === 0 && fencingToken === 1) throw new TaskError('flaky', 'flaky')
      return input
    },
  })
  onTestFinished(() => gate.resolve())
  const { startPool, enqueue, settled, kill, namespace, redisUrl } = rig
  const ids: TaskId[] = []
  for (let n = 0; n < 40; n++) ids.push(await enqueue(long, { input: { n }, needs: [db(needOf(n))] }))
  await startPool()
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(namespace, 'rig')
  await eventually(() => held >= 3)
  await kill(0, (await redis.lrange(keys.active, 0, -1)) as TaskId[])
  held = 0
  isGated = false
  await startPool()
  await startPool()
  for (const id of ids) expect((await settled(id))?.status).toBe('completed')
  expect(most).toBe(4)
  expect(await redis.exists(keys.inUse, keys.waitedNeeds)).toBe(0)
  expect(Number((await redis.hget(keys.totals, 'drift')) ?? 0)).toBe(0)
})
