// The leader at work: it serves every registered queue, another process takes over from it, and its successor's number keeps it out.
import { randomBytes, randomUUID } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { type BrokerOptions, openBroker } from '../broker.ts'
import { leaderKeys, queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { expireTasks } from './expirer.ts'
import { createHousekeeping } from './housekeeping.ts'

const QUICK = { leaseMs: 1_000, renewMs: 200, roundMs: 50 }
/** So long that nothing happens in a test unless the leader is woken or newly elected. */
const SLOW = { leaseMs: 60_000, renewMs: 20_000, roundMs: 60_000 }

function namespace() {
  const redisUrl = inject('redisUrl')
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  const name = `t-${randomUUID().slice(0, 12)}`
  const task = (queue: string, expiresAt?: number): NewTask => {
    const id = createTaskId(queue, Date.now(), randomBytes(10))
    const usual = {
      version: 1,
      input: {},
      maxAttempts: 1,
      meta: undefined,
      correlationId: undefined,
      delayMs: undefined,
    }
    const timeouts = { timeoutMs: undefined, heartbeatMs: undefined, queueMs: undefined, totalMs: undefined }
    return { id, task: 'a.b', queue, enqueuedAt: Date.now(), expiresAt, ...usual, ...timeouts }
  }
  return {
    redis,
    name,
    keys: leaderKeys(name),
    task,
    async open(queues: readonly string[], options: Partial<BrokerOptions> = {}) {
      const common = { redisUrl, namespace: name, queues, sizeLimit: 10_000, log: silent, leaderTimes: QUICK }
      const broker = openBroker({ ...common, ...options })
      onTestFinished(() => broker.close())
      await eventually(() => broker.ping().then(() => true))
      return broker
    },
    holder: () => redis.get(leaderKeys(name).lease),
  }
}

it('the leader expires tasks of a queue that is not in its own catalogue', async () => {
  const { open, task } = namespace()
  const producer = await open(['a'])
  const { id } = task('a')
  await producer.enqueue({ ...task('a', Date.now() + 200), id })
  await producer.close()
  const expired: string[] = []
  await open(['b'], { onExpired: (each) => expired.push(`${each.queue} ${each.id}`) })
  await eventually(() => expired.length > 0)
  expect(expired).toEqual([`a ${id}`])
})

it('another process takes over at once when the leader closes', async () => {
  const { open, holder, redis, keys } = namespace()
  const first = await open(['a'], { leaderTimes: SLOW })
  await eventually(async () => (await holder()) !== null)
  const before = await holder()
  const second = await open(['a'], { leaderTimes: SLOW })
  expect([first.isLeading(), second.isLeading()]).toEqual([true, false])
  await first.close()
  await eventually(() => second.isLeading())
  expect(first.isLeading()).toBe(false)
  await eventually(async () => ![null, before].includes(await holder()))
  expect(await redis.get(keys.fencing)).toBe('2')
})

it('a process does not lead before its clock is measured', async () => {
  const { open } = namespace()
  const { promise: measured, resolve } = Promise.withResolvers<void>()
  const first = await open(['a'], { measured })
  const second = await open(['a'])
  await eventually(() => second.isLeading())
  expect(first.isLeading()).toBe(false)
  resolve()
  await second.close()
  await eventually(() => first.isLeading())
})

it('another process takes over when the lease of a leader that died has expired', async () => {
  const { open, holder, redis, keys } = namespace()
  await redis.set(keys.lease, 'dead', 'PX', 500)
  await redis.set(keys.fencing, 6)
  await open(['a'])
  await eventually(async () => ![null, 'dead'].includes(await holder()))
  expect(await redis.get(keys.fencing)).toBe('7')
})

it('a queue refuses a leader whose number is older than the highest that it has seen', async () => {
  const { open, name, redis, task } = namespace()
  const broker = await open(['a'], { leaderTimes: SLOW })
  const due = task('a', Date.now() - 1)
  await broker.enqueue(due)
  const keys = queueKeys(name, 'a')
  await redis.set(keys.leader, 9)
  await redis.hset(keys.meta, 'max', Number.MAX_SAFE_INTEGER, 'duration', 1)
  const ended: string[] = []
  const housekeeping = createHousekeeping({
    redis,
    namespace: name,
    now: Date.now,
    process: 'test',
    onExpired: ({ id }) => ended.push(id),
    onCancelled: ({ id }) => ended.push(id),
    onRepaired: () => {},
    onFailed: (error) => expect.fail(String(error)),
  })
  const as = (fencing: number) => housekeeping({ name: 'a' }, { fencing, isOver: () => false })
  expect(await as(8)).toBe(9)
  const onExpired = ({ id }: { readonly id: string }) => void ended.push(id)
  await expireTasks(redis, keys, { fencing: 8, now: Date.now(), process: 'test', caller: 'test', onExpired })
  expect((await broker.find(due.id))?.status).toBe('waiting')
  expect(await redis.hget(keys.meta, 'max')).not.toBeNull()
  expect(ended).toEqual([])
  expect(await as(10)).toBe(undefined)
  expect(ended).toEqual([due.id])
  expect((await broker.find(due.id))?.status).toBe('expired')
  expect(await redis.get(keys.leader)).toBe('10')
  expect(await redis.hget(keys.meta, 'max')).toBeNull()
})

it('a leader that queues refuse although it holds the lease leads under a higher number', async () => {
  const { open, name, redis, keys, task } = namespace()
  await redis.set(queueKeys(name, 'a').leader, 20)
  const broker = await open(['a'])
  const due = task('a', Date.now() - 1)
  await broker.enqueue(due)
  await eventually(async () => (await broker.find(due.id))?.status === 'expired')
  expect(await redis.get(keys.fencing)).toBe('21')
})

it('the leader repairs the status index after a client without Bullpen has used the queue', async () => {
  const { open, name, redis, task } = namespace()
  const broker = await open(['a'])
  const scheduled = { ...task('a'), delayMs: 60_000 }
  await broker.enqueue(scheduled)
  const keys = queueKeys(name, 'a')
  await redis.zrem(keys.scheduled, scheduled.id)
  await eventually(async () => (await broker.counts('a')).scheduled === 1)
  expect(await redis.hget(keys.totals, 'drift')).toBe('1')
  await redis.hincrby(keys.totals, 'accepted', 3)
  await eventually(async () => (await redis.hget(keys.totals, 'drift')) === '4')
  expect(await redis.hmget(keys.totals, 'accepted', 'removed')).toEqual(['4', '3'])
})

it('the leader removes completed tasks that are older than the retention that a consumer has registered', async () => {
  const { open, name, redis } = namespace()
  const keys = queueKeys(name, 'a')
  const broker = await open(['a'])
  const added = redis.multi().hset(keys.totals, 'accepted', 250)
  for (let i = 0; i < 250; i++) {
    const endedAt = Date.now() + (i < 230 ? -60_000 : 60_000)
    added.hset(keys.job(`j${i}`), 'name', 'a.b').zadd(keys.completed, endedAt, `j${i}`)
  }
  await added.exec()
  expect((await broker.counts('a')).completed).toBe(250)
  await redis.hset(leaderKeys(name).registry, 'a', 10_000)
  await eventually(async () => (await broker.counts('a')).completed === 20)
  expect(await redis.exists(keys.job('j0'), keys.job('j229'), keys.job('j230'))).toBe(1)
  expect(await redis.hmget(keys.totals, 'accepted', 'removed', 'drift')).toEqual(['250', '230', null])
})

it('the leader compares the index entry by entry now and then, because equal sizes do not prove that it is right', async () => {
  const { open, name, redis, task } = namespace()
  const broker = await open(['a'], { leads: false })
  const scheduled = { ...task('a'), delayMs: 60_000 }
  await broker.enqueue(scheduled)
  const keys = queueKeys(name, 'a')
  await redis.zrem(keys.scheduled, scheduled.id)
  await redis.zadd(keys.retrying, 7, 'gone')
  const repaired = Promise.withResolvers<number>()
  const housekeeping = createHousekeeping({
    redis,
    namespace: name,
    now: Date.now,
    process: 'test',
    onExpired: () => {},
    onCancelled: () => {},
    onRepaired: (_, entries) => repaired.resolve(entries),
    onFailed: repaired.reject,
    compareEveryMs: 0,
  })
  const term = { fencing: 1, isOver: () => false }
  await housekeeping({ name: 'a' }, term)
  expect(await broker.counts('a')).toMatchObject({ scheduled: 0, retrying: 1 })
  await housekeeping({ name: 'a' }, term)
  expect(await repaired.promise).toBe(2)
  expect(await broker.counts('a')).toMatchObject({ scheduled: 1, retrying: 0 })
})
