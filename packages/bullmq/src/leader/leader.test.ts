// The leader at work: it serves every registered queue, another process takes over from it, and its successor's number keeps it out.
import { randomBytes, randomUUID } from 'node:crypto'
import { BullpenError, type Log } from '@bullpen/contract'
import { createTaskId, FINAL_STATUSES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import type { BrokerOptions } from '../broker/broker-options.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { leaderKeys, queueKeys } from '../keys.ts'
import { openSubscriber } from '../redis/subscriber.ts'
import { silent } from '../setup.fixture.ts'
import { takeLeaseScript } from '../store/scripts.ts'
import { openLeader } from './leader.ts'
import { resign } from './lease-calls.ts'

/** The lease is long, so that a busy machine does not end it. */
const QUICK = { leaseMs: 60_000, renewMs: 200, roundMs: 50 }
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
      priority: 0,
      meta: undefined,
      correlationId: undefined,
      concurrencyKey: undefined,
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
      const broker = openPatientBroker({ ...common, ...options })
      onTestFinished(() => broker.close())
      await eventually(() => broker.ping().then(() => true))
      return broker
    },
    holder: () => redis.get(leaderKeys(name).lease),
  }
}

it('the leader expires tasks of a queue that is not in its own catalogue', async () => {
  const { open, task } = namespace()
  const producer = await open(['a'], { leads: false })
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
  // The second process has learned who leads.
  await eventually(async () => (await second.leadership()).overMs > 0)
  await first.close()
  await eventually(() => second.isLeading())
  expect(first.isLeading()).toBe(false)
  await eventually(async () => ![null, before].includes(await holder()))
  expect(await redis.get(keys.fencing)).toBe('2')
  expect(await second.leadership()).toMatchObject({ isLed: true, changes: 1 })
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

it.each(FINAL_STATUSES)(
  'the leader removes %s tasks beyond the retention that a consumer has registered',
  async (status) => {
    const { open, name, redis } = namespace()
    const keys = queueKeys(name, 'a')
    const broker = await open(['a'])
    const added = redis.multi().hset(keys.totals, 'accepted', 250)
    for (let i = 0; i < 250; i++) {
      const endedAt = Date.now() + (i < 230 ? -60_000 : 60_000 + i)
      added.hset(keys.job(`j${i}`), 'name', 'a.b', 'finishedOn', endedAt).zadd(keys[status], endedAt, `j${i}`)
      if (status !== 'completed') added.zadd(keys.failed, endedAt, `j${i}`)
    }
    await added.exec()
    expect((await broker.counts('a'))[status]).toBe(250)
    const left = async (): Promise<number> => (await broker.counts('a'))[status]
    await redis.hset(leaderKeys(name).registry, 'a', JSON.stringify({ [status]: { ageMs: 10_000 } }))
    await eventually(async () => (await left()) === 20)
    expect(await redis.exists(keys.job('j0'), keys.job('j229'), keys.job('j230'))).toBe(1)
    await redis.hset(leaderKeys(name).registry, 'a', JSON.stringify({ [status]: { count: 5 } }))
    await eventually(async () => (await left()) === 5)
    expect(await redis.exists(keys.job('j244'), keys.job('j245'))).toBe(1)
    expect(await redis.zcard(keys.failed)).toBe(status === 'completed' ? 0 : 5)
    expect(await redis.hmget(keys.totals, 'accepted', 'removed', 'drift')).toEqual(['250', '245', null])
  },
)

/** Opens a candidate of its own, with a housekeeping that finds nothing to do. `replies` gates the replies to its requests. */
function candidate(
  { redis, name }: ReturnType<typeof namespace>,
  {
    visit = async () => undefined,
    settled = async () => {},
    checkSchema = () => undefined,
    replies,
    log = silent,
  }: Candidate,
) {
  const redisUrl = inject('redisUrl')
  const asked = Promise.withResolvers<void>()
  const { name: command, numberOfKeys, lua } = takeLeaseScript
  redis.defineCommand(command, { numberOfKeys, lua })
  // ioredis adds defined commands as methods, which its types do not have.
  const commands = redis as unknown as Record<string, (args: unknown) => Promise<unknown>>
  const take = commands[command]?.bind(redis)
  commands[command] = async (args) => {
    const reply = await take?.(args)
    asked.resolve()
    await replies
    return reply
  }
  const leader = openLeader({
    redis,
    redisUrl,
    namespace: name,
    checkSchema,
    measured: Promise.resolve(),
    housekeeping: { visit, settled, visitDue() {} },
    times: SLOW,
    log,
  })
  onTestFinished(() => leader.close())
  return { leader, asked: asked.promise }
}

interface Candidate {
  readonly visit?: () => Promise<number | undefined>
  readonly settled?: () => Promise<void>
  readonly checkSchema?: () => Promise<void> | undefined
  readonly replies?: Promise<void>
  readonly log?: Log
}

it('a candidate takes over at once when the leader resigns while the candidate is asking for the lease', async () => {
  const stage = namespace()
  const { redis, keys, name } = stage
  await redis.set(keys.lease, 'other', 'PX', 60_000)
  const replies = Promise.withResolvers<void>()
  const [subscribed, resigned] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { leader, asked } = candidate(stage, { replies: replies.promise })
  // The candidate shares this connection, subscribed before, and receives each message before.
  const subscriber = openSubscriber({
    redisUrl: inject('redisUrl'),
    channels: [leaderKeys(name).channel],
    onMessage: () => resigned.resolve(),
    onSubscribed: subscribed.resolve,
    log: silent,
  })
  onTestFinished(subscriber.close)
  await Promise.all([asked, subscribed.promise])
  await resign(redis, keys, 'other')
  await resigned.promise
  replies.resolve()
  await eventually(() => leader.isLeading())
})

it('a process that has closed holds no lease, although a queue refused it only then', async () => {
  const stage = namespace()
  const { redis, keys } = stage
  await redis.hset(keys.registry, 'a', '')
  const [visited, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<number>()]
  const visit = () => {
    visited.resolve()
    return refused.promise
  }
  const { leader } = candidate(stage, { visit })
  await visited.promise
  expect(await redis.exists(keys.lease)).toBe(1)
  const closing = leader.close()
  await eventually(async () => (await redis.exists(keys.lease)) === 0)
  refused.resolve(99)
  await closing
  // A request for the lease would be sent on this connection, before this command.
  expect(await redis.exists(keys.lease)).toBe(0)
  expect(await redis.get(keys.fencing)).toBe('1')
})

it('a process of an incompatible version asks as rarely as a follower, and one whose request failed asks soon again', async () => {
  const checks = { incompatible: 0, failing: 0 }
  const warnings: object[] = []
  const warned: Log = { ...silent, warn: (fields) => warnings.push(fields) }
  const error = new BullpenError('incompatible_schema', 'written by a newer Bullpen')
  const incompatible = async () => {
    checks.incompatible++
    throw error
  }
  candidate(namespace(), { checkSchema: incompatible, log: warned })
  const failing = async () => {
    checks.failing++
    throw new Error('refused')
  }
  candidate(namespace(), { checkSchema: failing })
  await eventually(() => checks.failing > 4)
  expect(checks.incompatible).toBe(1)
  expect(warnings).toEqual([{ err: error, suppressed: 0 }])
})

it('a leader that closes resigns at once, and then waits for its last scripts, so that it learns what they have done', async () => {
  const stage = namespace()
  const { redis, keys } = stage
  const order: string[] = []
  const replied = Promise.withResolvers<void>()
  const settled = () => replied.promise.then(() => void order.push('settled'))
  const { leader } = candidate(stage, { settled })
  await eventually(() => leader.isLeading())
  const closing = leader.close().then(() => order.push('closed'))
  await eventually(async () => (await redis.exists(keys.lease)) === 0)
  // By then, a process that did not wait would have closed.
  await redis.ping()
  replied.resolve()
  await closing
  expect(order).toEqual(['settled', 'closed'])
})
