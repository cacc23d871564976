import { defineCatalogue, defineHandler, defineTask, type TaskContext, type TaskEvent } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fakeClock } from '../fake-clock.ts'
import { memoryPool } from '../test-pool.ts'
import { memoryBroker } from './memory-broker.ts'

const echo = defineTask({ name: 'test.echo', queue: 'q', input: z.number(), output: z.number() })
const catalogue = defineCatalogue(echo)

function world(handle: (context: TaskContext<typeof echo>) => number | Promise<number> = ({ input }) => input) {
  const clock = fakeClock()
  const broker = memoryBroker({ clock })
  const events: TaskEvent[] = []
  const handlers = { 'test.echo': defineHandler(echo, import.meta.url, handle) }
  const pool = memoryPool(broker, { catalogue, handlers, clock, queue: 'q', sink: (event) => events.push(event) })
  return { clock, broker, pool, events }
}

const unavailable = { code: 'redis_unavailable' }

describe('a memory broker that is told to fail', () => {
  it('refuses every call, until it recovers', async () => {
    const { broker } = world()
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

  it('makes a pool wait with what it has, and with its start', async () => {
    const over = Promise.withResolvers<number>()
    const { broker, pool, clock } = world(() => over.promise)
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
    broker.recover()
    await clock.advance(0)
    expect(await broker.find(id)).toMatchObject({ status: 'completed', output: 7 })
    expect(await broker.find(next)).toMatchObject({ status: 'completed', output: 7 })
  })

  it('sweeps what has expired meanwhile when it recovers', async () => {
    const { broker, clock } = world()
    const id = await broker.add(echo, 1, { queueTimeout: '1s' })
    broker.fail()
    await clock.advance(10_000)
    broker.recover()
    expect((await broker.find(id))?.status).toBe('waiting')
    await clock.advance(2_000)
    expect((await broker.find(id))?.status).toBe('expired')
  })

  it('fails its feeds for good: the pool starts them again by itself, and loses nothing', async () => {
    const { broker, pool, clock, events } = world()
    await pool.start()
    broker.breakFeeds()
    const id = await broker.add(echo, 1)
    await clock.advance(499)
    expect(pool.slots()).toMatchObject([{ state: 'RECOVER_ERR' }])
    expect((await broker.find(id))?.status).toBe('waiting')
    await clock.advance(1)
    expect((await broker.find(id))?.status).toBe('completed')
    expect(events).toContainEqual({ event: 'slots.restarted', queue: 'q', slots: 1, afterMs: 500 })
  })
})

describe('a memory broker', () => {
  it('leaves a clock nothing to do when nothing is to come', async () => {
    const { broker, pool, clock } = world()
    await pool.start()
    await broker.add(echo, 1, { queueTimeout: '1s' })
    await broker.add(echo, 2, { delay: '1s' })
    await clock.advance(10_000)
    expect(await broker.counts('q')).toMatchObject({ completed: 2 })
    expect(clock.pending()).toBe(0)
  })

  it('takes with it, when it is closed, all that it would have done', async () => {
    const { broker, clock } = world()
    await broker.add(echo, 1, { delay: '1h', queueTimeout: '1s' })
    await broker.close()
    expect(clock.pending()).toBe(0)
  })
})
