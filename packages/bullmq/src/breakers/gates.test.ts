// How tasks wait for circuit breakers in their lanes, on a real Redis.
import type { BreakerMode, BreakerSettings, TaskId } from '@bullpen/contract'
import { DEFAULT_BREAKER } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { applySettings } from '../fleet/queue-settings.ts'
import { QUEUE } from '../internals/index-model/worker.fixture.ts'
import { NEEDS_MARK } from '../internals/turns/limiters/needs.ts'
import { NO_KEY, stage } from '../internals/turns/stage.fixture.ts'
import { runnerOn, runScript } from '../scripts/script.ts'
import { countActiveScript } from '../store/scripts.ts'
import { defineBreakers } from './stored-breaker.ts'

/** More lanes than a fetch lets take turns again. */
const LANES = 40
const ON_SMTP = { services: ['smtp'] }
const HOUR = 3_600_000

async function stageWithBreaker(settings: Partial<BreakerSettings> = {}) {
  const opened = await stage()
  const { redis, keys, add } = opened
  const define = (services: readonly string[]) =>
    defineBreakers(
      runnerOn(redis),
      keys,
      Object.fromEntries(
        services.map((service) => [service, { ...DEFAULT_BREAKER, openMs: HOUR, maxOpenMs: HOUR, ...settings }]),
      ),
      { replaces: true },
    )
  let commands = 0
  const set = (to: BreakerMode) => {
    const spec = { action: 'breaker', queue: QUEUE, service: 'smtp', to } as const
    return applySettings(redis, keys, { id: 'c', spec, by: 'ann', sequence: `${++commands}`, at: 0 })
  }
  await define(['smtp'])
  return {
    ...opened,
    define,
    set,
    async addToLanes(): Promise<TaskId[]> {
      const ids: TaskId[] = []
      for (let i = 0; i < LANES; i++) ids.push(await add(`k${i}`, ON_SMTP))
      return ids
    },
    /** Fetches until several scripts in a row have found no task, because each of them looks at a few lanes only. */
    async startEvery(): Promise<string[]> {
      const started: string[] = []
      for (let idle = 0; idle < 5; ) {
        const some = await opened.startAll()
        idle = some.length === 0 ? idle + 1 : 0
        started.push(...some)
      }
      return started
    },
  }
}

it('while a breaker is open, fetches do not examine the tasks that depend on it, and all of them start when it has closed', async () => {
  const { add, addToLanes, startEvery, set, redis, keys, keysOf, violations } = await stageWithBreaker()
  await set('open')
  const ids = await addToLanes()
  await add(NO_KEY)
  await add('k1')
  expect(
    keysOf(await startEvery())
      .split(' ')
      .toSorted(),
  ).toEqual(['-', 'k1'])
  expect(await redis.zcard(keys.turns)).toBe(0)
  expect(await violations()).toEqual([])
  await set('closed')
  expect((await startEvery()).toSorted()).toEqual(ids.toSorted())
  expect(await violations()).toEqual([])
})

it('a half-open breaker lets its probes start, and the other lanes stop taking turns again', async () => {
  const { addToLanes, startEvery, set, redis, keys, violations } = await stageWithBreaker({ probes: 2 })
  await set('open')
  await addToLanes()
  expect(await startEvery()).toEqual([])
  await set('auto')
  const probes = await startEvery()
  expect(probes).toHaveLength(2)
  for (const id of probes) expect(await redis.hget(keys.job(id), 'admitted')).toBe('{"smtp":2}')
  expect(await redis.zcard(keys.turns)).toBe(0)
  expect(await violations()).toEqual([])
})

it('a worker notices in time that the next probe may start, although no task waited meanwhile, and although limits were removed', async () => {
  const { add, start, startEvery, set, complete, limit, redis, keys } = await stageWithBreaker()
  await set('open')
  await set('auto')
  await add('a', ON_SMTP)
  const before = Date.now()
  await start(1)
  await complete()
  // All that is stored about turns is forgotten.
  expect(await startEvery()).toEqual([])
  expect(await redis.exists(keys.laneTimes)).toBe(0)
  const nextAt = async () => Number(await redis.zscore(keys.laneTimes, `${NEEDS_MARK}service:smtp`))
  await add('b', ON_SMTP)
  expect(await startEvery()).toEqual([])
  const first = await nextAt()
  // The clocks of Redis and of this process may differ slightly.
  expect(first - before).toBeGreaterThan(HOUR - 1_000)
  await limit({ concurrency: 5 })
  await limit({ concurrency: 'none' })
  expect(await startEvery()).toEqual([])
  expect(await nextAt()).toBe(first)
})

it('a worker that has nothing to do does not wait for a time of a breaker, in whatever order it opens and closes', async () => {
  const { add, start, startEvery, complete, set, setCapacity, redis, keys } = await stageWithBreaker()
  const times = () => redis.zrange(keys.laneTimes, '0', '-1')
  await add('a', ON_SMTP)
  await start(1)
  await complete()
  expect(await startEvery()).toEqual([])
  for (const mode of ['open', 'closed', 'open', 'auto', 'closed'] as const) {
    await set(mode)
    expect(await times(), mode).toEqual([])
    await setCapacity('permits:db', 1)
    expect(await times(), mode).toEqual([])
  }
})

it('a task that depends on several services waits until all of their breakers let it start', async () => {
  const { add, define, set, startEvery } = await stageWithBreaker()
  await define(['crm', 'smtp'])
  await set('open')
  const id = await add(NO_KEY, { services: ['crm', 'smtp'] })
  expect(await startEvery()).toEqual([])
  await set('auto')
  expect(await startEvery()).toEqual([id])
})

it('a worker that runs only some tasks does not start them while the breaker is open', async () => {
  const { add, startOnly, set, redis, keys } = await stageWithBreaker()
  await set('open')
  const id = await add('a', ON_SMTP)
  expect(await startOnly([id])).toEqual([])
  await set('closed')
  expect(await startOnly([id])).toEqual([id])
  expect(await redis.hget(keys.job(id), 'admitted')).toBe('{"smtp":2}')
})

it('workers that run only some tasks find out that a breaker lets tasks start, although no task waited meanwhile', async () => {
  const { add, startOnly, set, redis, keys } = await stageWithBreaker()
  await set('open')
  await set('auto')
  const probe = await add('a', ON_SMTP)
  expect(await startOnly([probe])).toEqual([probe])
  // All that is stored about turns is forgotten, but not that the breaker lets no further task start.
  expect(await startOnly([])).toEqual([])
  expect(await redis.exists(keys.laneTimes)).toBe(0)
  expect(await redis.hget(keys.capacities, 'service:smtp')).toBe('0')
  const { breaker, ...others } = JSON.parse((await redis.hget(keys.breakers, 'smtp')) ?? '')
  await redis.hset(keys.breakers, 'smtp', JSON.stringify({ ...others, breaker: { ...breaker, until: 1 } }))
  const next = await add('b', ON_SMTP)
  expect(await startOnly([next])).toEqual([next])
})

it('a task that waits for permits does not delay others while the breaker lets it start nothing', async () => {
  const { add, start, startAll, set, setCapacity, complete, violations } = await stageWithBreaker()
  const db = (amount: number) => [{ limiter: 'permits:db', amount }]
  await setCapacity('permits:db', 3)
  await add(NO_KEY, { needs: db(2) })
  await start(1)
  const large = await add(NO_KEY, { needs: db(2), ...ON_SMTP })
  expect(await startAll()).toEqual([])
  const small = await add(NO_KEY, { needs: db(1) })
  // One permit is free, but the task that needs two came first.
  expect(await startAll()).toEqual([])
  await set('open')
  expect(await startAll()).toEqual([small])
  expect(await violations()).toEqual([])
  await set('closed')
  await complete()
  await complete()
  expect(await startAll()).toEqual([large])
})

it('a breaker that opens wakes no lane that does not depend on its service', async () => {
  const { add, startAll, limit, set, setCapacity, redis, keys } = await stageWithBreaker()
  await limit({ concurrency: 1 })
  await setCapacity('permits:db', 100)
  const needs = [{ limiter: 'permits:db', amount: 1 }]
  for (let i = 0; i < LANES; i++) {
    await add(`k${i}`, { needs })
    await add(`k${i}`, { needs })
  }
  await setCapacity('permits:gpu', 0)
  await add(NO_KEY, { needs: [{ limiter: 'permits:gpu', amount: 1 }] })
  expect(await startAll()).toHaveLength(LANES)
  expect(await startAll()).toEqual([])
  await set('open')
  expect(await redis.zcard(keys.turns)).toBe(0)
  expect(await redis.zcard(keys.blockedLanes)).toBe(LANES + 1)
})

it('the last probe holds nothing of a limiter, also in a worker that runs only some tasks', async () => {
  const { add, startOnly, set, limit, redis, keys } = await stageWithBreaker()
  await limit({ concurrency: 5 })
  await set('open')
  await set('auto')
  const id = await add('a', ON_SMTP)
  expect(await startOnly([id])).toEqual([id])
  expect(await redis.hget(keys.capacities, 'service:smtp')).toBe('0')
  expect(await redis.exists(keys.inUse)).toBe(0)
  expect(await runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })).toBe(0)
})

it('a worker that only repeats what it has stored does not replace the settings of a worker that started later', async () => {
  const { redis, keys } = await stageWithBreaker()
  const define = () => defineBreakers(runnerOn(redis), keys, { smtp: DEFAULT_BREAKER }, { replaces: false })
  const openMs = async () => JSON.parse((await redis.hget(keys.breakers, 'smtp')) ?? '').settings.openMs
  await define()
  expect(await openMs()).toBe(HOUR)
  await redis.del(keys.breakers)
  await define()
  expect(await openMs()).toBe(DEFAULT_BREAKER.openMs)
})

it('once a breaker is removed from the definition, the tasks that depend on it start', async () => {
  const { add, define, set, startEvery } = await stageWithBreaker()
  await set('open')
  const id = await add('a', ON_SMTP)
  expect(await startEvery()).toEqual([])
  await define([])
  expect(await startEvery()).toEqual([id])
})
