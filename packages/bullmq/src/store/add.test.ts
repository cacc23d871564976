// Tests what one enqueue stores, and that the same id stores nothing a second time.
import { randomBytes, randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { monitorCommands } from '../redis/command-monitor.fixture.ts'
import { long, short, silent } from '../setup.fixture.ts'
import { ALL_EVENTS_UNTIL } from './backend-events.ts'

async function openQueue(redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  // A leader would write when it surveys the queue, at any time.
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['rig'],
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  const redis = new Redis(redisUrl)
  const keys = queueKeys(namespace, 'rig')
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const [queue = expect.fail('the broker has no queue')] = broker.boardQueues
  return {
    broker,
    redis,
    keys,
    queue,
    /** Everything that is stored below the queue's prefix, by key. DUMP serialises a value of any type. */
    async stored(): Promise<Map<string, string>> {
      const found = (await redis.keys(`${keys.base}*`)).sort()
      return new Map(await Promise.all(found.map(async (key) => [key, String(await redis.dump(key))] as const)))
    },
  }
}

const identity = () => ({
  id: createTaskId('rig', Date.now(), randomBytes(10)),
  enqueuedAt: Date.now(),
  correlationId: undefined,
})

const task = (call: { delay?: '1h'; queueTimeout?: '1m'; tags?: string[] }) => newTask(long, { n: 3 }, call, identity())

describe('an enqueue', () => {
  it('of a delayed task lets no worker wait longer than until the next lane may start a task', async () => {
    const { broker, redis, keys } = await openQueue()
    const soon = Date.now() + 60_000
    await redis.zadd(keys.laneTimes, soon, 'tenant')
    await broker.enqueue(task({ delay: '1h' }))
    expect(await redis.zscore(keys.marker, '1')).toBe(`${soon}`)
  })

  it('stores the task, its tags and its queue timeout in one command', async () => {
    // A connection takes the method when it is opened.
    const sent = vi.spyOn(Redis.prototype, 'sendCommand')
    onTestFinished(() => sent.mockRestore())
    const { broker, redis, keys } = await openQueue()
    await broker.enqueue(task({}))
    sent.mockClear()
    const wanted = task({ queueTimeout: '1m', tags: ['a', 'b'] })
    await broker.enqueue(wanted)
    const ofTask = sent.mock.calls.filter(([command]) => String(command.toWritable({})).includes(wanted.id))
    expect(ofTask.map(([{ name }]) => name)).toEqual(['evalsha'])
    expect(await redis.zscore(keys.expiries, wanted.id)).toBe(`${wanted.expiresAt}`)
    expect(await redis.hget(keys.job(wanted.id), 'tags')).toBe('["a","b"]')
  })

  it.each([
    [{}, [], ['LPUSH wait']],
    [{ priority: 2 }, ['INCR pc', 'ZADD prioritized'], []],
  ] as const)('with %j runs no command that it does not need', async (options, first, last) => {
    const server = await privateRedis()
    await server.start()
    const { broker, redis, keys } = await openQueue(server.url)
    const ofCaller = () => newTask(short, { n: 3 }, options, { ...identity(), caller: 'only' })
    // The first call of a script may be sent twice, so it looks for the task.
    await broker.enqueue(ofCaller())
    const wanted = ofCaller()
    const run: string[] = []
    let call: 'awaited' | 'running' | 'over' = 'awaited'
    const monitor = await monitorCommands(redis, ([command = '', ...args], source) => {
      if (source === 'lua') {
        if (call === 'running') run.push([command.toUpperCase(), ...args.slice(0, 1)].join(' ').replace(keys.base, ''))
        // The broker may later send the id to another script, such as the one that looks for tasks that Redis has lost.
      } else if (call === 'running') call = 'over'
      else if (call === 'awaited' && args.includes(wanted.id)) call = 'running'
    })
    onTestFinished(monitor.close)
    await redis.hset(keys.meta, ALL_EVENTS_UNTIL, 1)
    await broker.enqueue(wanted)
    await redis.ping()
    await eventually(() => call === 'over')
    expect(run.map((command) => command.replace(wanted.id, 'job'))).toEqual([
      ...[
        'HGET totals',
        'HSET job',
        'HMGET meta',
        'TIME',
        ...first,
        'HINCRBY totals',
        'HINCRBY totals',
        ...last,
        'ZADD marker',
      ],
    ])
    expect(await redis.exists(`${keys.base}id`)).toBe(0)
  })

  it.each([{}, { delay: '1h' }, { priority: 2 }] as const)(
    'with %j stores the fields that a Queue stores',
    async (call) => {
      const { broker, queue, redis, keys } = await openQueue()
      const own = newTask(short, { n: 3 }, call, { ...identity(), caller: 'only' })
      await broker.enqueue(own)
      const { data = '', ...fields } = await redis.hgetall(keys.job(own.id))
      const { id } = task({})
      const { delayMs, priority, maxAttempts: attempts, enqueuedAt: timestamp } = own
      const options = {
        attempts,
        bullpen: 1,
        ...(delayMs && { delay: delayMs }),
        ...(priority && { priority }),
      }
      await queue.add(short.name, JSON.parse(data), { ...options, timestamp, jobId: id })
      const { data: data2, ...others } = await redis.hgetall(keys.job(id))
      expect(data2).toBe(data)
      expect({ ...fields, opts: JSON.parse(fields['opts'] ?? '') }).toEqual({ ...others, opts: options })
      // BullMQ's Queue also stores the time and the id among the options.
      expect(JSON.parse(others['opts'] ?? '')).toEqual({ ...options, timestamp, jobId: id })
    },
  )

  it('that fails in Redis fails alone, and the tasks of the same batch wait for a worker', async () => {
    const { broker, redis, keys } = await openQueue()
    await redis.set(keys.uniqueKeys, 'no hash')
    const unique = { key: 'k', until: 'finished', onConflict: 'keep', maxDelayMs: undefined } as const
    const tasks = [task({}), { ...task({}), unique }, task({})]
    const [first, broken, last] = await Promise.allSettled(tasks.map((each) => broker.enqueue(each)))
    expect([first, last]).toMatchObject([{ value: { action: 'created' } }, { value: { action: 'created' } }])
    expect(broken).toMatchObject({
      reason: { code: 'redis_unavailable', message: expect.stringContaining('WRONGTYPE') },
    })
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([tasks[2]?.id, tasks[0]?.id])
    expect(await redis.hget(keys.totals, 'accepted')).toBe('2')
    await redis.del(keys.uniqueKeys)
  })

  it.each([{}, { delay: '1h' } as const])('with %j writes nothing when the id is known', async (call) => {
    const { broker, stored } = await openQueue()
    const first = task({ ...call, queueTimeout: '1m', tags: ['a'] })
    await broker.enqueue(first)
    const before = await stored()
    expect(before.size).toBeGreaterThan(3)
    const again = { ...first, delayMs: undefined, expiresAt: 1, tags: ['b'], input: { n: 4 } }
    expect(await broker.enqueue(again)).toEqual({ id: first.id, action: 'existing' })
    expect(await stored()).toEqual(before)
  })
})

describe('a job that is added with the broker’s Queue', () => {
  it.each([
    ['standard', {}, 'waiting'],
    ['delayed', { delay: 60_000 }, 'scheduled'],
    ['prioritized', { priority: 2 }, 'waiting'],
  ] as const)('is counted by the %s add, once for one id', async (_, options, status) => {
    const { broker, queue, redis, keys } = await openQueue()
    const { id } = task({})
    for (const n of [1, 2]) expect((await queue.add(long.name, { n }, { ...options, jobId: id })).id).toBe(id)
    expect(await broker.counts('rig')).toMatchObject({ waiting: 0, scheduled: 0, [status]: 1 })
    expect(await redis.hget(keys.totals, 'accepted')).toBe('1')
    expect(await broker.enqueue({ ...task({}), id: id as TaskId })).toEqual({ id, action: 'existing' })
  })
})
