// The duties of the leader in one queue: they are fenced, do not wait for each other, and stop when the leader's term
// is over.
import { randomBytes, randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { leaderKeys, queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { expireTasks } from './expirer.ts'
import { createFailureLog } from './failure-log.ts'
import { createHousekeeping, type HousekeepingFailure, type HousekeepingOptions } from './housekeeping.ts'

const QUEUE = 'a'

/** A queue without a leader, and a housekeeping that a test calls. */
async function queue(options: Partial<HousekeepingOptions> = {}) {
  const redisUrl = inject('redisUrl')
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
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
  const ended: string[] = []
  const repaired: number[] = []
  const failures: HousekeepingFailure[] = []
  const housekeeping = createHousekeeping({
    redis,
    namespace,
    now: Date.now,
    process: 'test',
    forwarder: { forwardLeft: async () => {} },
    visits: { groups: async () => {}, runs: async () => {}, workers: async () => {} },
    unattached: { onFound: () => {}, onGone: () => {} },
    onExpired: ({ id }) => ended.push(id),
    onCancelled: ({ id }) => ended.push(id),
    onRepaired: (_, entries) => repaired.push(entries),
    onNewFingerprint: () => {},
    runDueSchedules: async () => undefined,
    watchSchedules: async () => {},
    onFailed: (failure) => failures.push(failure),
    ...options,
  })
  return {
    redis,
    broker,
    housekeeping,
    ended,
    repaired,
    failures,
    registry: leaderKeys(namespace).registry,
    keys: queueKeys(namespace, QUEUE),
    /** Adds a task. By default, its queue timeout has passed. */
    async add(given: Partial<NewTask> = { expiresAt: Date.now() - 1 }): Promise<TaskId> {
      const id = createTaskId(QUEUE, Date.now(), randomBytes(10))
      const task = { id, task: 'a.b', queue: QUEUE, version: 1, input: {}, enqueuedAt: Date.now(), maxAttempts: 1 }
      await broker.enqueue({ ...task, ...given } as NewTask)
      return id
    },
    /** Visits the queue as a leader, and waits for the duties. */
    async visit(fencing = 1, isOver = () => false) {
      const deposedBy = await housekeeping.visit({ name: QUEUE }, { fencing, isOver })
      await housekeeping.settled()
      return deposedBy
    },
  }
}

it('a queue refuses a leader whose number is older than the highest that it has seen', async () => {
  const { redis, broker, keys, ended, failures, add, visit } = await queue()
  const due = await add()
  await redis.set(keys.leader, 9)
  await redis.hset(keys.meta, 'max', Number.MAX_SAFE_INTEGER, 'duration', 1)
  expect(await visit(8)).toBe(9)
  const onExpired = ({ id }: { readonly id: string }) => void ended.push(id)
  await expireTasks(redis, keys, { fencing: 8, now: Date.now, process: 'test', caller: 'test', onExpired })
  expect((await broker.find(due))?.status).toBe('waiting')
  expect(await redis.hget(keys.meta, 'max')).not.toBeNull()
  expect(ended).toEqual([])
  expect(await visit(10)).toBe(undefined)
  expect(ended).toEqual([due])
  expect((await broker.find(due))?.status).toBe('expired')
  expect(await redis.get(keys.leader)).toBe('10')
  expect(await redis.hget(keys.meta, 'max')).toBeNull()
  expect(failures).toEqual([])
})

it('the index is compared entry by entry now and then, because equal sizes do not prove that it is right', async () => {
  const { redis, broker, keys, repaired, add, visit } = await queue({ compareEveryMs: 0 })
  const id = await add({ delayMs: 60_000 })
  await redis.zrem(keys.scheduled, id)
  await redis.zadd(keys.retrying, 7, 'gone')
  await visit()
  expect(await broker.counts(QUEUE)).toMatchObject({ scheduled: 0, retrying: 1 })
  await visit()
  expect(repaired).toEqual([2])
  expect(await broker.counts(QUEUE)).toMatchObject({ scheduled: 1, retrying: 0 })
})

it('a comparison of the index is due by Redis’s clock, also for a leader that has just started, until one has completed it', async () => {
  const { redis, keys, repaired, add, visit } = await queue({ compareEveryMs: 60_000 })
  await add({ delayMs: 60_000 })
  await visit()
  const comparedAt = async () => Number(await redis.hget(keys.totals, 'comparedAt'))
  const first = await comparedAt()
  expect(repaired).toEqual([])
  // As an earlier leader has left it.
  await redis.hset(keys.totals, 'comparedAt', first - 60_000)
  await visit(2, () => true)
  expect(await comparedAt()).toBe(first - 60_000)
  await visit(3)
  expect(await comparedAt()).toBeGreaterThanOrEqual(first)
  expect(repaired).toHaveLength(2)
  await visit(3)
  expect(repaired).toHaveLength(2)
})

it('only one queue is compared at a time, and the others remain due', async () => {
  const compared: string[] = []
  const { housekeeping } = await queue({ compareEveryMs: 0, onRepaired: (name) => compared.push(name) })
  const visit = async (...queues: readonly string[]): Promise<void> => {
    for (const name of queues) await housekeeping.visit({ name }, { fencing: 1, isOver: () => false })
    await housekeeping.settled()
  }
  await visit('a', 'b')
  expect(compared).toEqual([])
  await visit('a', 'b')
  expect(compared).toEqual(['a'])
  await visit('b')
  expect(compared).toEqual(['a', 'b'])
})

describe('a duty that fails', () => {
  it('is reported with its name and queue, and the other duties of the queue are done', async () => {
    const { redis, keys, ended, failures, add, visit } = await queue()
    const due = await add()
    await redis.rpush(keys.active, 'lost')
    // The search for lost tasks, which is the first duty, expects a set, and the cancel by filter a hash.
    await redis.set(keys.unrenewed, 'not a set')
    await redis.set(keys.cancelRules, 'not a hash')
    await visit()
    expect(ended).toEqual([due])
    expect(failures.map(({ queue, duty }) => `${duty} ${queue}`).toSorted()).toEqual([
      'cancelByRules a',
      'requeueLost a',
    ])
    await redis.del(keys.unrenewed, keys.cancelRules)
    const next = await add()
    await visit()
    expect(ended).toEqual([due, next])
    expect(failures).toHaveLength(2)
  })

  it('is reported as the survey if the queue cannot be surveyed, and the visit does not reject', async () => {
    const { redis, keys, failures, visit } = await queue()
    await redis.set(keys.expiries, 'not a sorted set')
    expect(await visit()).toBeUndefined()
    expect(failures).toMatchObject([{ queue: QUEUE, duty: 'survey', error: { name: 'ReplyError' } }])
  })

  it('is logged at most once a minute for each duty and queue', () => {
    const lines: object[] = []
    const counted: string[] = []
    let at = 0
    const write = createFailureLog({
      log: { warn: (fields) => lines.push(fields) },
      onFailed: ({ queue, duty }) => counted.push(`${duty} ${queue}`),
      now: () => at,
    })
    const error = new Error('refused')
    for (at = 0; at <= 60_000; at += 20_000) {
      write({ queue: 'a', duty: 'expire', error })
      if (at === 20_000) write({ queue: 'b', duty: 'expire', error })
      write({ queue: 'a', duty: 'removeOld', error: new Error('Connection is closed.') })
    }
    expect(lines).toEqual([
      { err: error, queue: 'a', duty: 'expire', suppressed: 0 },
      { err: error, queue: 'b', duty: 'expire', suppressed: 0 },
      { err: error, queue: 'a', duty: 'expire', suppressed: 2 },
    ])
    expect(counted).toEqual(['expire a', 'expire a', 'expire b', 'expire a', 'expire a'])
  })
})

describe('a backlog', () => {
  it('of expired tasks is reported page by page, and left to the next leader when the term is over', async () => {
    const { ended, add, visit } = await queue()
    for (let i = 0; i < 45; i++) await add()
    await visit(1, () => ended.length > 0)
    expect(ended).toHaveLength(20)
    await visit(2)
    expect(ended).toHaveLength(45)
    expect(new Set(ended).size).toBe(45)
  })

  it('of expired tasks behind a long waiting list is expired in smaller pages', async () => {
    const { redis, keys, ended, add } = await queue()
    for (let i = 0; i < 10; i++) await add()
    const others = Array.from({ length: 90_000 }, (_, i) => `other${i}`)
    for (let i = 0; i < others.length; i += 10_000) await redis.rpush(keys.wait, ...others.slice(i, i + 10_000))
    const pages: number[] = []
    const isOver = (): boolean => {
      pages.push(ended.length)
      return false
    }
    const onExpired = ({ id }: { readonly id: string }) => void ended.push(id)
    await expireTasks(redis, keys, { fencing: 1, now: Date.now, process: 'test', caller: 'test', isOver, onExpired })
    expect(pages).toEqual([2, 4, 6, 8])
    expect(ended).toHaveLength(10)
    expect(await redis.llen(keys.wait)).toBe(90_000)
  })

  it('of expired tasks does not hold up the visit, nor the search for lost tasks in the next one', async () => {
    const { redis, broker, keys, housekeeping, ended, add } = await queue()
    for (let i = 0; i < 200; i++) await add()
    const lost = await add({})
    await redis.multi().lrem(keys.wait, 1, lost).lpush(keys.active, lost).exec()
    const visit = () => housekeeping.visit({ name: QUEUE }, { fencing: 1, isOver: () => false })
    await visit()
    expect(ended.length).toBeLessThan(200)
    await eventually(async () => {
      await visit()
      return (await broker.find(lost))?.status === 'waiting' && (await redis.llen(keys.active)) === 0
    })
    await housekeeping.settled()
    expect(ended).toHaveLength(200)
  })

  it('of old completed tasks is left to the next leader when the term is over', async () => {
    const { redis, keys, housekeeping } = await queue()
    const added = redis.multi().hset(keys.totals, 'accepted', 250)
    for (let i = 0; i < 250; i++) added.hset(keys.job(`j${i}`), 'name', 'a.b').zadd(keys.completed, 1_000 + i, `j${i}`)
    await added.exec()
    const visit = async (fencing: number, isOver: () => boolean) => {
      await housekeeping.visit({ name: QUEUE, retention: { completed: { ageMs: 60_000 } } }, { fencing, isOver })
      await housekeeping.settled()
      return redis.zcard(keys.completed)
    }
    expect(await visit(1, () => true)).toBe(150)
    expect(await visit(2, () => false)).toBe(0)
  })
})

it('the leader drops events that are older than the queue keeps them', async () => {
  const { redis, broker, keys, housekeeping, add } = await queue()
  for (let n = 0; n < 300; n++) await redis.xadd(keys.taskEvents, `${1_000 + n}-0`, 'id', 'x', 'event', '{}')
  await add({ events: 1_000 })
  const visit = () => housekeeping.visit({ name: QUEUE, eventsAgeMs: 60_000 }, { fencing: 1, isOver: () => false })
  await visit()
  await visit()
  expect(await redis.xlen(keys.taskEvents)).toBe(1)
  expect(await broker.events(QUEUE).bounds()).toMatchObject({ isComplete: false })
})
