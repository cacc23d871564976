import {
  defineCatalogue,
  defineHandler,
  defineQueue,
  defineTask,
  type TaskContext,
  type TaskEvent,
} from '@bullpen/contract'
import { MAX_LOSSES } from '@bullpen/engine/internal'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fakeClock } from '../fake-clock.ts'
import { memoryPool } from '../test-pool.ts'
import { memoryBroker } from './memory-broker.ts'

const echo = defineTask({ name: 'test.echo', queue: 'q', input: z.number(), output: z.number() })
const catalogue = defineCatalogue(echo)

function openQueue(handle: (context: TaskContext<typeof echo>) => number | Promise<number> = ({ input }) => input) {
  const clock = fakeClock()
  const broker = memoryBroker({ clock })
  const events: TaskEvent[] = []
  const handlers = { 'test.echo': defineHandler(echo, import.meta.url, handle) }
  const pool = memoryPool(broker, { catalogue, handlers, clock, queue: 'q', sink: (event) => events.push(event) })
  return { clock, broker, pool, events }
}

const unavailable = { code: 'redis_unavailable' }

describe('fail()', () => {
  it('makes every call reject until recover() is called', async () => {
    const { broker } = openQueue()
    const id = await broker.add(echo, 1)
    broker.fail()
    await expect(broker.add(echo, 1)).rejects.toMatchObject(unavailable)
    await expect(broker.find(id)).rejects.toMatchObject(unavailable)
    await expect(broker.waitUntilFinished(id, AbortSignal.timeout(1))).rejects.toMatchObject(unavailable)
    await expect(broker.list({ queue: 'q', status: 'waiting', limit: 1, cursor: undefined })).rejects.toMatchObject(
      unavailable,
    )
    await expect(broker.counts('q')).rejects.toMatchObject(unavailable)
    await expect(broker.ping()).rejects.toMatchObject(unavailable)
    broker.recover()
    await expect(broker.ping()).resolves.toBeUndefined()
    expect((await broker.find(id))?.status).toBe('waiting')
  })

  it('makes a pool wait with its start, its fetching and its commits', async () => {
    const over = Promise.withResolvers<number>()
    const { broker, pool, clock, events } = openQueue(() => over.promise)
    broker.fail()
    void pool.start()
    await clock.advance(1_000)
    expect(pool.state()).toBe('NEW')
    broker.recover()
    const [id, next] = [await broker.add(echo, 1), await broker.add(echo, 2)]
    await clock.advance(0)
    expect([pool.state(), pool.busy(), pool.notReady()]).toEqual(['BG_RUNNING', 1, undefined])
    broker.fail()
    over.resolve(7)
    await clock.advance(1_000)
    expect([pool.busy(), pool.notReady()]).toEqual([1, 'Redis is not connected'])
    const ended = () => events.filter(({ event }) => event === 'attempt.ended')
    expect(ended()).toEqual([])
    broker.recover()
    await clock.advance(0)
    expect(await broker.find(id)).toMatchObject({ status: 'completed', output: 7 })
    expect(await broker.find(next)).toMatchObject({ status: 'completed', output: 7 })
    expect(ended()).toMatchObject([{ id }, { id: next }])
  })

  it('delays the expiry of tasks until recover() is called', async () => {
    const { broker, clock } = openQueue()
    const id = await broker.add(echo, 1, { queueTimeout: '1s' })
    broker.fail()
    await clock.advance(10_000)
    broker.recover()
    expect((await broker.find(id))?.status).toBe('waiting')
    await clock.advance(2_000)
    expect((await broker.find(id))?.status).toBe('expired')
  })

  it('failConsumers() makes a pool restart its consumer, and loses no task', async () => {
    const { broker, pool, clock, events } = openQueue()
    await pool.start()
    broker.failConsumers()
    const id = await broker.add(echo, 1)
    await clock.advance(499)
    expect(pool.slots()).toMatchObject([{ state: 'RECOVER_ERR' }])
    expect((await broker.find(id))?.status).toBe('waiting')
    await clock.advance(1)
    expect((await broker.find(id))?.status).toBe('completed')
    expect(events).toContainEqual({ event: 'slots.restarted', queue: 'q', slots: 1, afterMs: 500 })
  })
})

describe('a worker whose commit the broker does not answer', () => {
  it('does not count a task that it releases during an outage', async () => {
    const { broker, pool, clock } = openQueue()
    await pool.start()
    // The task is being fetched when the drain and the outage begin.
    const added = broker.add(echo, 1)
    const drained = pool.drain({ drainMs: 1_000, graceMs: 100 })
    broker.fail()
    await clock.advance(5_000)
    expect(await drained).toMatchObject({ requeued: 0, unconfirmed: [{ id: await added, task: 'test.echo' }] })
  })

  it('emits no end if it is killed', async () => {
    const over = Promise.withResolvers<number>()
    const { broker, pool, clock, events } = openQueue(() => over.promise)
    await pool.start()
    await broker.add(echo, 1)
    await clock.advance(0)
    broker.kill('memory')
    over.resolve(7)
    await clock.advance(0)
    expect(events.filter(({ event }) => event.startsWith('attempt.'))).toMatchObject([{ event: 'attempt.started' }])
  })

  it('emits a refused commit if the lock of a task is lost while its handler runs', async () => {
    const over = Promise.withResolvers<number>()
    const { broker, pool, clock, events } = openQueue(({ fencingToken }) => (fencingToken === 1 ? over.promise : 2))
    await pool.start()
    const id = await broker.add(echo, 1)
    await clock.advance(0)
    broker.loseLock(id)
    await clock.advance(10_000)
    expect(await broker.find(id)).toMatchObject({ status: 'completed', output: 2 })
    expect(events.filter(({ event }) => event !== 'pool.state' && event !== 'attempt.started')).toMatchObject([
      { event: 'attempt.commit_refused', fencingToken: 1, refusal: 'lock_lost' },
      { event: 'attempt.ended', fencingToken: 2 },
    ])
  })
})

it('a task whose worker was lost too often uses the rate of its key when it is fetched and ends', async () => {
  const starts = 2 * MAX_LOSSES + 1
  const perConcurrencyKey = { rate: '1/24h', burst: starts + 1 } as const
  const queue = defineQueue({ name: 'q', limits: { perConcurrencyKey } })
  const keyed = defineTask({ name: 'test.keyed', queue, input: z.number(), output: z.number() })
  const clock = fakeClock()
  const broker = memoryBroker({ clock })
  const handle = defineHandler(keyed, import.meta.url, ({ input, fencingToken, snooze }) => {
    if (input > 0) return input
    // The task would be dead after three deaths in a row.
    if (fencingToken % 2 === 0) return snooze('1s')
    broker.kill('memory')
    isKilled = true
    return input
  })
  const handlers = { 'test.keyed': handle }
  const startPool = () => memoryPool(broker, { catalogue: defineCatalogue(keyed), handlers, clock, queue: 'q' }).start()
  let isKilled = false
  await startPool()
  const poisoned = await broker.add(keyed, 0, { concurrencyKey: 'a' })
  for (let i = 0; i <= starts; i++) {
    await clock.advance(10_000)
    if (isKilled) await startPool()
    isKilled = false
  }
  expect(await broker.find(poisoned)).toMatchObject({ status: 'dead', fencingToken: starts })
  const next = await broker.add(keyed, 1, { concurrencyKey: 'a' })
  const other = await broker.add(keyed, 1, { concurrencyKey: 'b' })
  await clock.advance(10_000)
  expect(await broker.find(other)).toMatchObject({ status: 'completed' })
  expect(await broker.find(next)).toMatchObject({ status: 'waiting', waitsFor: { kind: 'rate' } })
})

it('a task that has lost its lock more than the maximum number of times runs again if its worker lived each time', async () => {
  const losses = MAX_LOSSES + 2
  const { broker, pool, clock } = openQueue(({ id, fencingToken }) => {
    if (fencingToken <= losses) broker.loseLock(id)
    return fencingToken
  })
  await pool.start()
  const id = await broker.add(echo, 1)
  for (let i = 0; i <= losses; i++) await clock.advance(10_000)
  expect(await broker.find(id)).toMatchObject({ status: 'completed', output: losses + 1 })
})

describe('a memory broker', () => {
  it('leaves no timer on the clock when every task has ended', async () => {
    const { broker, pool, clock } = openQueue()
    await pool.start()
    await broker.add(echo, 1, { queueTimeout: '1s' })
    await broker.add(echo, 2, { delay: '1s' })
    await clock.advance(10_000)
    expect(await broker.counts('q')).toMatchObject({ completed: 2 })
    expect(clock.pending()).toBe(0)
  })

  it('clears its timers when it is closed', async () => {
    const { broker, clock } = openQueue()
    await broker.add(echo, 1, { delay: '1h', queueTimeout: '1s' })
    await broker.close()
    expect(clock.pending()).toBe(0)
  })
})

it('a scheduled task that is due starts by its priority, although its timer fires late', async () => {
  const clock = fakeClock()
  let lateMs = 0
  const broker = memoryBroker({ clock: { ...clock, now: () => clock.now() + lateMs } })
  const started: number[] = []
  const over = Promise.withResolvers<void>()
  const handlers = {
    'test.echo': defineHandler(echo, import.meta.url, async ({ input }) => {
      started.push(input)
      await over.promise
      return input
    }),
  }
  const pool = memoryPool(broker, { catalogue, handlers, clock, queue: 'q', concurrency: 1 })
  await pool.start()
  await broker.add(echo, 0)
  await clock.advance(0)
  await broker.add(echo, 5, { priority: 5 })
  await broker.add(echo, 4, { priority: 4, delay: '50ms' })
  lateMs = 50
  over.resolve()
  await clock.advance(0)
  expect(started).toEqual([0, 4, 5])
  await clock.advance(50)
  expect(clock.pending()).toBe(0)
})
