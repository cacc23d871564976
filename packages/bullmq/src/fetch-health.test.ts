// A pool that cannot fetch: its idle slots are in RECOVER_ERR from the first fetch that fails, or from the loss of its connection, until
// fetching works again.
import type { Log } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { createFetchHealth } from './fetch-health.ts'
import { queueKeys } from './keys.ts'
import { setup, short, silent } from './setup.fixture.ts'

afterEach(() => vi.useRealTimers())

const failures = (log: { readonly error: ReturnType<typeof vi.fn> }) =>
  log.error.mock.calls.filter(([, text]) => String(text).startsWith('fetching failed'))

async function pool(redisUrl = inject('redisUrl'), through = redisUrl) {
  const log = { ...silent, error: vi.fn<Log['error']>() }
  const all = await setup({ redisUrl, concurrency: 4, log })
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  const started = await all.startPool(through)
  const states = () => started.slots().map(({ state }) => state)
  const restarts = () => all.events.filter(({ event }) => event === 'slots.restarted')
  await eventually(() => states().every((state) => state === 'IDLE'))
  return { ...all, redis, keys: queueKeys(all.namespace, 'rig'), log, states, restarts }
}

const ALL_FAILED = ['RECOVER_ERR', 'RECOVER_ERR', 'RECOVER_ERR', 'RECOVER_ERR']
const ALL_IDLE = ['IDLE', 'IDLE', 'IDLE', 'IDLE']

describe('a pool whose fetches Redis refuses with an error', () => {
  it('has its slots in RECOVER_ERR until a fetch succeeds, which is logged once and reported once', async () => {
    const { redis, keys, states, restarts, log, enqueue, settled } = await pool()
    await redis.set(keys.wait, 'not a list')
    await redis.zadd(keys.marker, '0', '0')
    await eventually(() => states().every((state) => state === 'RECOVER_ERR'))
    expect([states(), restarts(), failures(log).length]).toEqual([ALL_FAILED, [], 1])
    await redis.del(keys.wait)
    // No marker wakes the pool: it fetches until it succeeds.
    await eventually(() => states().every((state) => state === 'IDLE'))
    expect(restarts()).toEqual([{ event: 'slots.restarted', queue: 'rig', slots: 4, afterMs: expect.any(Number) }])
    expect(failures(log)).toEqual([[{ err: expect.any(Error), queue: 'rig' }, expect.any(String)]])
    expect((await settled(await enqueue(short, { input: { n: 3 } })))?.output).toEqual({ n: 3 })
    expect(states()).toEqual(ALL_IDLE)
  })

  it('drains at once', async () => {
    const { redis, keys, states, drain } = await pool()
    await redis.set(keys.wait, 'not a list')
    await redis.zadd(keys.marker, '0', '0')
    await eventually(() => states().every((state) => state === 'RECOVER_ERR'))
    expect(await drain()).toMatchObject([{ abandoned: [], unconfirmed: [] }])
    await redis.del(keys.wait)
  })
})

describe('a pool whose waits for a task Redis refuses', () => {
  it('fetches without a wait', async () => {
    const server = await privateRedis()
    await server.start()
    const { redis, broker, enqueue, settled, log } = await pool(server.url)
    await redis.call('ACL', 'SETUSER', 'default', '-bzpopmin')
    // Ends the waits that are under way.
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    const refused = (): boolean => log.error.mock.calls.some(([, text]) => text === 'queue error')
    await eventually(refused)
    await eventually(() => broker.ping().then(() => true))
    expect((await settled(await enqueue(short, { input: { n: 3 } })))?.output).toEqual({ n: 3 })
    expect(failures(log)).toEqual([])
  })
})

describe('a pool whose connection is lost', () => {
  it('has its slots in RECOVER_ERR until the connection is back, and then runs tasks', async () => {
    const server = await privateRedis()
    await server.start()
    const { states, restarts, log, broker, enqueue, settled } = await pool(server.url)
    await server.crash()
    await eventually(() => states().every((state) => state === 'RECOVER_ERR'))
    expect(restarts()).toEqual([])
    await server.start()
    await eventually(() => states().every((state) => state === 'IDLE'))
    // The outage reporter logs the outage.
    expect([restarts(), failures(log)]).toEqual([[], []])
    await eventually(() => broker.ping().then(() => true))
    expect((await settled(await enqueue(short, { input: { n: 4 } })))?.output).toEqual({ n: 4 })
  })

  it('runs the tasks whose fetch was under way when its connection was closed', async () => {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const { enqueue, settled, states } = await pool(inject('redisUrl'), proxy.url)
    proxy.cutAnswers()
    const id = await enqueue(short, { input: { n: 5 } })
    proxy.reset()
    expect((await settled(id))?.output).toEqual({ n: 5 })
    await eventually(() => states().every((state) => state === 'IDLE'))
  })
})

describe('the pause after a failed fetch', () => {
  function health() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const slots = { fetchingFailed: vi.fn(), fetchingResumed: vi.fn() }
    const log = { ...silent, error: vi.fn<Log['error']>() }
    return { slots, log, ...createFetchHealth(slots, { queue: 'q', log }) }
  }
  /** Returns whether the pause is over, as soon as everything that follows from its end has happened. */
  const watch = (pause: Promise<void>) => {
    let isOver = false
    void pause.then(() => {
      isOver = true
    })
    return async (): Promise<boolean> => {
      await vi.advanceTimersByTimeAsync(0)
      return isOver
    }
  }

  it('grows with each failure to a second, and begins again with the shortest once a fetch has succeeded', async () => {
    const { failed, works, slots, log } = health()
    const lengths: number[] = []
    for (let i = 0; i < 8; i++) {
      const isOver = watch(failed(new Error('no')))
      let ms = 0
      while (!(await isOver())) {
        await vi.advanceTimersByTimeAsync(50)
        ms += 50
      }
      lengths.push(ms)
    }
    expect(lengths).toEqual([50, 100, 200, 400, 800, 1_000, 1_000, 1_000])
    works()
    works()
    expect([slots.fetchingFailed.mock.calls.length, slots.fetchingResumed.mock.calls]).toEqual([8, [[4_550]]])
    expect(log.error).toHaveBeenCalledTimes(1)
    const isOver = watch(failed(new Error('again')))
    await vi.advanceTimersByTimeAsync(50)
    expect(await isOver()).toBe(true)
    expect(log.error).toHaveBeenCalledTimes(2)
  })

  it.each(['works', 'stop'] as const)('ends when %s() is called', async (how) => {
    const made = health()
    const isOver = watch(made.failed(new Error('no')))
    expect(await isOver()).toBe(false)
    made[how]()
    expect(await isOver()).toBe(true)
  })
})
