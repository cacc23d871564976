// Which of BullMQ's events the scripts add to a queue's stream.
import { randomUUID } from 'node:crypto'
import { eventually } from '@bullpen/testkit'
import { Queue, QueueEvents, type RedisQueueBackend, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished, vi } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { runnerOn } from '../scripts/script.ts'
import { setup } from '../setup.fixture.ts'
import { ALL_EVENTS_UNTIL, askForAllEvents, eventMethods, omitMoveEvents } from './backend-events.ts'
import { bullpenBackend } from './bullpen-backend.ts'

/** A queue and a Worker with Bullpen's backend. */
function stage(namespace = `t-${randomUUID().slice(0, 12)}`) {
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'rig')
  const options = { connection: redis, prefix: prefixOf(namespace, 'rig') }
  const queue = new Queue('rig', options, bullpenBackend())
  const worker = new Worker('rig', async () => {}, { ...options, autorun: false }, bullpenBackend())
  onTestFinished(async () => {
    await Promise.all([worker.close(), queue.close()])
    redis.disconnect()
  })
  return {
    ...{ redis, keys, queue, options },
    /** Adds a job, runs it twice, and returns what BullMQ's tools have learned since. */
    async run(): Promise<(string | undefined)[]> {
      const [last] = (await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1))[0] ?? ['0']
      await queue.add('x', {}, { attempts: 2 })
      const first = (await worker.getNextJob('token', { block: false })) ?? expect.fail()
      await first.moveToFailed(new Error('no'), 'token', false)
      const second = (await worker.getNextJob('token', { block: false })) ?? expect.fail()
      await second.moveToCompleted(undefined, 'token', false)
      return (await redis.xrange(keys.events, `(${last}`, '+')).map(([, [, event]]) => event)
    },
  }
}

const ALL = ['added', 'waiting', 'active', 'waiting', 'active', 'completed']

it("a queue that is not a namespace's has all events", async () => {
  expect(await stage().run()).toEqual([...ALL, 'drained'])
})

it("a namespace's queue has the events of ends, and those of moves while a QueueEvents with the backend reads them", async () => {
  const { namespace, broker } = await setup({ leads: false })
  await broker.ping()
  const { redis, keys, run, options } = stage(namespace)
  await eventually(async () => Number(await redis.hget(keys.meta, ALL_EVENTS_UNTIL)) > Date.now() + 10_000)
  // No reader has asked for them.
  await redis.hset(keys.meta, ALL_EVENTS_UNTIL, Date.now() - 1)
  expect(await run()).toEqual(['completed', 'drained'])
  const reader = new QueueEvents('rig', { ...options, connection: { url: inject('redisUrl') } }, bullpenBackend())
  onTestFinished(() => reader.close())
  const started = Promise.withResolvers<void>()
  reader.on('active', () => started.resolve())
  await eventually(async () => Number(await redis.hget(keys.meta, ALL_EVENTS_UNTIL)) > Date.now() + 50_000)
  expect(await run()).toEqual([...ALL, 'drained'])
  await started.promise
  await redis.hset(keys.meta, ALL_EVENTS_UNTIL, Date.now() - 1)
  expect(await run()).toEqual(['completed', 'drained'])
})

it('a reader says every ten seconds at most that it still reads, and never waits for longer', async () => {
  const waits: number[] = []
  let said = 0
  const read = async (_: string, ms: number) => void waits.push(ms)
  const backend = { toKey: String, readEvents: read } as unknown as RedisQueueBackend
  const { readEvents } = eventMethods(backend, async () => ++said as never)
  for (const blockMs of [0, 5_000, 60_000]) await readEvents('$', blockMs)
  expect(waits).toEqual([10_000, 5_000, 10_000])
  expect(said).toBe(1)
})

it('a reader asks again after ten seconds, and learns whether events were omitted meanwhile', async () => {
  const clock = vi.spyOn(performance, 'now')
  onTestFinished(() => clock.mockRestore())
  let asked = 0
  const ask = askForAllEvents(async () => ++asked as never, 'meta')
  const found: unknown[] = []
  for (const seconds of [0, 9, 10, 59, 110]) {
    clock.mockReturnValue(seconds * 1_000)
    found.push([await ask(), asked])
  }
  expect(found).toEqual([
    [true, 1],
    [true, 1],
    [true, 2],
    [true, 3],
    [false, 4],
  ])
})

it('a reader that asks before the queue is registered has all events until it asks again', async () => {
  const { redis, keys } = stage()
  await askForAllEvents(runnerOn(redis), keys.meta)()
  await omitMoveEvents(redis, keys.meta)
  expect(Number(await redis.hget(keys.meta, ALL_EVENTS_UNTIL))).toBeGreaterThan(Date.now() + 10_000)
})

it('a reader reads the events of ends although Redis refuses its request', async () => {
  const readEvents = async () => 'read' as never
  const backend = { toKey: String, readEvents } as unknown as RedisQueueBackend
  const refuse = () => Promise.reject(new Error('READONLY'))
  expect(await eventMethods(backend, refuse).readEvents('$', 1)).toBe('read')
})
