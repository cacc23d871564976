// Several leaders at once, lost replies, and a store that forgets: each tick still enqueues one task.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineSchedule, defineTask, type Log } from '@bullpen/contract'
import { runDueSchedules, type ScheduleStore, settingsOf } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { createScheduleStore } from './schedule-store.ts'

const QUEUE = 'ticks'
const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
const task = defineTask({ name: 'test.tick', queue: QUEUE, input: z.object({}) })

/** A schedule whose last twenty ticks are due, and stores of several processes. */
async function setup(processes = 1) {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: [QUEUE],
    sizeLimit: 10_000,
    leads: false,
    log: silent,
  })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  const connections = Array.from({ length: processes }, () => new Redis(redisUrl))
  const stores = connections.map((redis) =>
    createScheduleStore({ redis, namespace, queues: [QUEUE], codec: undefined, call: (run) => run() }),
  )
  onTestFinished(() => {
    for (const redis of connections) redis.disconnect()
  })
  const definition = defineSchedule({
    name: 'tick',
    task,
    input: {},
    every: '1s',
    overlap: 'allow',
    catchUp: { max: 100 },
  })
  await broker.schedules.put(definition, { source: 'api', by: 'test' })
  const [first] = stores as [ScheduleStore]
  const [found] = await first.all()
  if (found === undefined) throw new Error('the schedule is not stored')
  const { record, token, now } = found
  const cursor = Math.floor(now / 1_000) * 1_000 - 20_000
  const past = { ...record, cursor, next: cursor + 1_000 }
  await first.write({ queue: QUEUE, name: 'tick', expected: token, token: 'past', record: past, wakeAt: cursor })
  const ticks = async (): Promise<readonly string[]> => {
    const { tasks } = await broker.list({ queue: QUEUE, status: 'waiting', limit: 200, cursor: undefined })
    return tasks.map(({ meta }) => meta['bullpen.tick'] ?? '').toSorted()
  }
  const lead = async (store: ScheduleStore, onEnqueued = () => {}): Promise<void> => {
    for (;;) {
      const options = { store, sha256, randomBytes, cancel: async () => {}, onEnqueued }
      const waitMs = await runDueSchedules(options, QUEUE, 0)
      if (waitMs !== 0) return
    }
  }
  const [redis] = connections as [Redis]
  return { broker, stores, redis, ticks, lead, keys: queueKeys(namespace, QUEUE), cursor, past }
}

test('each tick enqueues one task, however many leaders run the schedule at the same time', async () => {
  const { stores, ticks, lead } = await setup(8)
  let enqueued = 0
  await Promise.all(stores.map((store) => lead(store, () => enqueued++)))
  const found = await ticks()
  expect(found.length).toBeGreaterThanOrEqual(20)
  expect(new Set(found).size).toBe(found.length)
  expect(enqueued).toBe(found.length)
})

test('a script whose reply was lost does nothing when it is sent again', async () => {
  const { stores, ticks, lead } = await setup()
  const [store] = stores as [ScheduleStore]
  const twice: ScheduleStore = {
    ...store,
    async write(write) {
      await store.write(write)
      return store.write(write)
    },
  }
  await lead(twice)
  const found = await ticks()
  expect(found.length).toBeGreaterThanOrEqual(20)
  expect(new Set(found).size).toBe(found.length)
})

test('a schedule that has lost its newest state finds the tasks that it has enqueued', async () => {
  const { stores, redis, keys, past, cursor, broker, ticks, lead } = await setup()
  const [store] = stores as [ScheduleStore]
  await lead(store)
  const before = await ticks()
  await redis.hset(keys.schedules, 'tick', `past ${JSON.stringify(past)}`)
  await redis.zadd(keys.scheduleTimes, cursor, 'tick')
  await lead(store)
  const after = await ticks()
  expect(new Set(after).size).toBe(after.length)
  expect(after).toEqual(expect.arrayContaining([...before]))
  expect(await broker.totals(QUEUE)).toMatchObject({ unaccounted: 0 })
})

test('a tick is not enqueued before its time on the clock of Redis', async () => {
  const { stores, past } = await setup()
  const [store] = stores as [ScheduleStore]
  const write = { queue: QUEUE, name: 'tick', expected: 'past', token: 'next', record: past, wakeAt: undefined }
  expect(await store.write({ ...write, notBefore: (await store.now(QUEUE)) + 60_000 })).toBe('early')
  expect(await store.write({ ...write, notBefore: await store.now(QUEUE) })).toBe('written')
  expect(await store.write({ ...write, token: 'other' })).toBe('conflict')
})

test('while the queue is draining, its ticks stay due', async () => {
  const { stores, redis, keys, ticks, lead } = await setup()
  const [store] = stores as [ScheduleStore]
  await redis.hset(keys.settings, 'drain', '{}')
  await lead(store)
  expect(await ticks()).toEqual([])
  await redis.hdel(keys.settings, 'drain')
  await lead(store)
  expect((await ticks()).length).toBeGreaterThanOrEqual(20)
})

test('a schedule whose input the leader cannot decode does not stop the others', async () => {
  const { redis, keys, stores, lead, ticks, cursor } = await setup()
  const [store] = stores as [ScheduleStore]
  const [found] = await store.all()
  if (found === undefined) throw new Error('the schedule is not stored')
  const encoded = { ...found.record, name: 'encoded', encodedInput: '~abc' }
  await redis.hset(keys.schedules, 'encoded', `token ${JSON.stringify(encoded)}`)
  await redis.zadd(keys.scheduleTimes, cursor, 'encoded')
  await expect(lead(store)).rejects.toThrow('codec')
  expect(await ticks()).toHaveLength(1)
})

test('with a codec, the inputs of a schedule and of its follow-ups are not readable in Redis', async () => {
  const { redis, keys, broker } = await setup()
  const codec = {
    encode: (json: string) => Buffer.from(json).toString('base64'),
    decode: (text: string) => Buffer.from(text, 'base64').toString(),
  }
  const namespace = keys.base.slice(1, keys.base.indexOf('.'))
  const store = createScheduleStore({ redis, namespace, queues: [QUEUE], codec, call: (run) => run() })
  const [found] = await store.all()
  if (found === undefined) throw new Error('the schedule is not stored')
  const after = defineTask({ name: 'test.after', queue: QUEUE, input: z.object({ secret: z.string() }) })
  const followed = defineTask({
    ...{ name: 'test.followed', queue: QUEUE, input: z.object({ secret: z.string() }) },
    onEnd: (followUp) => [followUp(after, ({ input }) => ({ secret: `${input.secret}z3` }))],
  })
  const input = { secret: 'x1y2' }
  const { template } = settingsOf(defineSchedule({ name: 'tick', task: followed, input, every: '1s' }))
  const record = { ...found.record, template }
  await store.write({ queue: QUEUE, name: 'tick', expected: found.token, token: 'coded', record, wakeAt: undefined })
  expect(await redis.hget(keys.schedules, 'tick')).not.toContain('x1y2')
  const read = (await store.all())[0]?.record.template
  expect(read?.input).toEqual(input)
  expect(read?.followUps).toMatchObject([{ on: 'end', task: { task: 'test.after', input: { secret: 'x1y2z3' } } }])
  const [unread] = await broker.schedules.list()
  expect(unread?.record.unreadableInput?.reason).toContain('codec')
  expect(unread?.record.template).not.toHaveProperty('followUps')
  // A process that cannot decode them leaves them as they are.
  await broker.schedules.pause('tick', 'ann')
  expect((await store.all())[0]?.record).toMatchObject({ template: { input, followUps: [{ on: 'end' }] }, paused: {} })
})
