// Tests what Redis stores for unique keys, how calls behave whose reply is lost, and what the leader deletes.
import { randomBytes, randomUUID } from 'node:crypto'
import type { UniqueOptions } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask, UniqueKey } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { createKeyRemover } from '../leader/unique-key-remover.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { long, silent } from '../setup.fixture.ts'
import { newOne, queueOfMoves } from '../store/move-batch.fixture.ts'

async function openQueue(redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const options = { redisUrl, namespace, queues: ['rig'], sizeLimit: 10_000, leads: false, log: silent }
  const broker = openPatientBroker(options)
  const redis = new Redis(inject('redisUrl'))
  const keys = queueKeys(namespace, 'rig')
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await redis.unlink(keys.uniqueKeys)
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const taskWith = (unique: Partial<UniqueOptions> = {}, given: Partial<NewTask> = {}): NewTask => {
    const id = createTaskId('rig', Date.now(), randomBytes(10))
    const origin = { id, enqueuedAt: Date.now(), correlationId: undefined, caller: 'only' } as const
    return { ...newTask(long, {}, { unique: { key: 'k', ...unique } }, origin), ...given }
  }
  const removeKeys = createKeyRemover(redis, keys)
  return {
    broker,
    namespace,
    redis,
    keys,
    taskWith,
    enqueue: (...args: Parameters<typeof taskWith>) => broker.enqueue(taskWith(...args)),
    removeKeys: (fencing = 1) => removeKeys({ fencing, isOver: () => false }),
    entries: () => redis.hgetall(keys.uniqueKeys),
  }
}

/** Opens another broker of the namespace, which connects to Redis directly. */
async function openRival(namespace: string) {
  const redisUrl = inject('redisUrl')
  const rival = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['rig'],
    sizeLimit: 10_000,
    leads: false,
    log: silent,
  })
  onTestFinished(() => rival.close())
  await eventually(() => rival.ping().then(() => true))
  return rival
}

describe('the entry of a unique key', () => {
  it.each([
    ['finished', 'f'],
    ['started', 's'],
  ] as const)('names the task and until when it has the key: %s', async (until, span) => {
    const { enqueue, entries } = await openQueue()
    const { id } = await enqueue({ until })
    expect(await entries()).toEqual({ 'rig.long:k': `${id} ${span}` })
  })

  it('has the time at which the key is free, by the clock of Redis', async () => {
    const { enqueue, entries, redis } = await openQueue()
    const now = async () => {
      const [seconds, micros] = await redis.time()
      return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
    }
    const before = await now()
    await enqueue({ until: '1h' }, { enqueuedAt: Date.now() - 1_000 })
    const until = Number((await entries())['rig.long:k']?.split(' ')[1])
    expect(until).toBeGreaterThanOrEqual(before + 3_600_000)
    expect(until).toBeLessThanOrEqual((await now()) + 3_600_000)
  })

  it('names the newest of several tasks that replace each other in one call of the script, and only that task waits', async () => {
    const { add, start, redis, keys } = queueOfMoves()
    const unique: UniqueKey = { key: 'k', until: 'finished', onConflict: 'replace', maxDelayMs: undefined }
    const tasks = [1, 2, 3].map(() => newOne({ unique }))
    await add(tasks)
    const newest = tasks[2]?.id ?? expect.fail()
    expect(Object.values(await redis.hgetall(keys.uniqueKeys))).toEqual([`${newest} f`])
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([newest])
    expect(await redis.hmget(keys.totals, 'accepted', 'removed')).toEqual(['3', '2'])
    expect(await start('token')).toEqual([newest])
  })

  it('names a task that replaces a delayed one in the same call of the script, although no task is delayed any more', async () => {
    const { add, redis, keys } = queueOfMoves()
    const unique: UniqueKey = { key: 'k', until: 'finished', onConflict: 'replace', maxDelayMs: undefined }
    const tasks = [newOne({ unique, delayMs: 60_000 }), newOne({ unique })]
    await add(tasks)
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([tasks[1]?.id])
    expect(await redis.exists(keys.delayed, keys.scheduled)).toBe(0)
  })

  it('takes at most 150 bytes if there are many', async () => {
    const { enqueue, redis, keys } = await openQueue()
    const count = 2_000
    for (let sent = 0; sent < count; sent += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, i) => enqueue({ key: `customer-${sent + i}` })))
    }
    const bytes = (await redis.memory('USAGE', keys.uniqueKeys, 'SAMPLES', 0)) ?? 0
    expect(bytes / count).toBeLessThan(150)
  })

  it('is not written, and nothing else is, without a unique key', async () => {
    const { enqueue, redis, keys } = await openQueue()
    await enqueue({}, { unique: undefined })
    expect(await redis.exists(keys.uniqueKeys)).toBe(0)
  })
})

describe('a task that a cancel by filter covers', () => {
  const unique = (onConflict: UniqueKey['onConflict']): UniqueKey => ({
    key: 'k',
    until: 'finished',
    onConflict,
    maxDelayMs: undefined,
  })
  const RULE = { id: 'r', queue: 'rig', before: Date.now() + 3_600_000, reason: 'cancelled', by: '', at: 1 }

  it('has no key, even before the leader has ended the task', async () => {
    const { enqueue, redis, keys, broker } = await openQueue()
    const first = await enqueue()
    await redis.hset(keys.cancelRules, 'r', JSON.stringify({ ...RULE, task: 'rig.short' }))
    expect(await enqueue()).toMatchObject({ id: first.id, action: 'existing' })
    await redis.hset(keys.cancelRules, 'r', JSON.stringify({ ...RULE, task: 'rig.long' }))
    const second = await enqueue({ onConflict: 'error' })
    expect(second.action).toBe('created')
    expect((await broker.find(first.id))?.status).toBe('cancelled')
  })

  it('is found although a rule contains half of a character, which Redis does not decode', async () => {
    const { enqueue, redis, keys } = await openQueue()
    const first = await enqueue()
    await redis.hset(keys.cancelRules, 'r', JSON.stringify({ ...RULE, tag: '\ud83d' }))
    expect(await enqueue()).toMatchObject({ id: first.id, action: 'existing' })
  })

  it('has its key for the time that it asked for, is reported as cancelled, and is neither replaced nor postponed', async () => {
    const { enqueue, redis, keys } = await openQueue()
    const { id } = await enqueue({ until: '1h' }, { delayMs: 3_600_000 })
    await redis.hset(keys.cancelRules, 'r', JSON.stringify(RULE))
    for (const onConflict of ['keep', 'replace', 'extend'] as const) {
      const answer = await enqueue({}, { delayMs: 7_200_000, unique: unique(onConflict) })
      expect(answer).toEqual({ id, action: 'existing', status: 'cancelled' })
    }
  })

  it('has its key as long as it runs', async () => {
    const { enqueue, redis, keys } = await openQueue()
    const { id } = await enqueue()
    await lockTask(redis, keys, id, 'token')
    await redis.hset(keys.cancelRules, 'r', JSON.stringify(RULE))
    expect(await enqueue()).toEqual({ id, action: 'existing', status: 'active' })
    await unlockTasks(redis, keys, id)
    expect(await enqueue()).toMatchObject({ action: 'created' })
  })
})

describe('a call whose reply is lost', () => {
  it.each([
    ['keep', 'created', 2],
    ['replace', 'replaced', 3],
  ] as const)('is sent again and gets the same action, with %s', async (onConflict, action, accepted) => {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const { broker, enqueue, taskWith, redis, keys } = await openQueue(proxy.url)
    // The first call reads the queue's settings.
    await enqueue({ key: 'other' })
    if (action === 'replaced') await enqueue({ onConflict })
    const task = taskWith({ onConflict })
    proxy.cutAnswers()
    const answer = broker.enqueue(task)
    await eventually(async () => (await redis.hget(keys.totals, 'accepted')) === `${accepted}`)
    proxy.reset()
    expect(await answer).toEqual({ id: task.id, action })
    expect(await redis.hget(keys.totals, 'accepted')).toBe(`${accepted}`)
    expect(await redis.hget(keys.totals, 'removed')).toBe(action === 'replaced' ? '1' : null)
  })
})

describe('a call whose reply is lost, and whose task is replaced before the call is sent again', () => {
  it.each([
    ['keep', 'created'],
    ['replace', 'replaced'],
  ] as const)('gets its own action, with %s, and leaves the newer task in place', async (onConflict, action) => {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const { broker, enqueue, taskWith, redis, keys, namespace } = await openQueue(proxy.url)
    const rival = await openRival(namespace)
    // The first call reads the queue's settings.
    await Promise.all([rival.enqueue(taskWith({ key: 'a' })), enqueue({ key: 'b' })])
    if (action === 'replaced') await enqueue({ onConflict })
    const task = taskWith({ onConflict })
    proxy.cutAnswers()
    const answer = broker.enqueue(task)
    await eventually(async () => (await redis.exists(keys.job(task.id))) === 1)
    const newer = taskWith({ onConflict: 'replace' })
    expect(await rival.enqueue(newer)).toMatchObject({ id: newer.id, action: 'replaced' })
    const before = await rival.totals('rig')
    proxy.reset()
    expect(await answer).toEqual({ id: task.id, action })
    expect((await redis.lrange(keys.wait, 0, -1))[0]).toBe(newer.id)
    expect(await rival.totals('rig')).toEqual(before)
    expect((await rival.enqueue(taskWith())).id).toBe(newer.id)
  })
})

describe('a task that is replaced', () => {
  it.each([
    ['wait', {}],
    ['prioritized', { priority: 2 }],
    ['delayed', { delayMs: 3_600_000 }],
  ] as const)('is deleted from %s with all its keys', async (place, given) => {
    const { enqueue, redis, keys, broker } = await openQueue()
    const { id } = await enqueue({}, { ...given, tags: ['x'], expiresAt: Date.now() + 3_600_000 })
    const second = await enqueue({ onConflict: 'replace' }, given)
    expect(second.action).toBe('replaced')
    const ids = place === 'wait' ? await redis.lrange(keys.wait, 0, -1) : await redis.zrange(keys[place], '0', '-1')
    expect(ids).toEqual([second.id])
    expect(await redis.keys(`${keys.base}${id}*`)).toEqual([])
    expect(await redis.exists(keys.expiries)).toBe(0)
    expect(await redis.zcard(keys.scheduled)).toBe(place === 'delayed' ? 1 : 0)
    const events = await redis.xrange(keys.events, '-', '+')
    expect(events.map(([, fields]) => fields.join(' '))).toContain(`event removed jobId ${id} prev ${place}`)
    expect(await broker.totals('rig')).toMatchObject({ accepted: 2, removed: 1, drift: 0, unaccounted: 0 })
  })
})

describe('the leader', () => {
  it('deletes the entries of keys that no task has', async () => {
    const { broker, enqueue, removeKeys, entries, redis, keys } = await openQueue()
    const [ended, deleted, started, kept] = [
      await enqueue({ key: 'ended' }),
      await enqueue({ key: 'deleted' }),
      await enqueue({ key: 'started', until: 'started' }),
      await enqueue({ key: 'kept' }),
    ]
    await enqueue({ key: 'past', until: '1ms' })
    await enqueue({ key: 'later', until: '1h' })
    await broker.cancel(ended.id, { stoppable: true })
    await redis.del(keys.job(deleted.id))
    await redis.hset(keys.job(started.id), 'ats', 1)
    const now = Date.now()
    await eventually(() => Date.now() > now + 2)
    await removeKeys()
    expect(Object.keys(await entries()).toSorted()).toEqual(['rig.long:kept', 'rig.long:later'])
    expect((await entries())['rig.long:kept']).toBe(`${kept.id} f`)
  })

  it('deletes nothing if there is a newer leader', async () => {
    const { enqueue, removeKeys, entries, redis, keys } = await openQueue()
    const { id } = await enqueue()
    await redis.del(keys.job(id))
    await redis.set(keys.leader, 9)
    await removeKeys(8)
    expect(Object.keys(await entries())).toHaveLength(1)
    await removeKeys(9)
    expect(await entries()).toEqual({})
  })

  it('goes on as long as many entries are out of date, and otherwise looks at one page', async () => {
    const { removeKeys, redis, keys } = await openQueue()
    const fill = (from: number, to: number, entry: string) =>
      redis.hset(
        keys.uniqueKeys,
        Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`k${from + i}`, entry])),
      )
    await fill(0, 5_000, 'rig-gone f')
    await removeKeys()
    expect(await redis.hlen(keys.uniqueKeys)).toBe(0)
    await fill(0, 5_000, `rig-1 ${Date.now() + 3_600_000}`)
    await fill(5_000, 5_500, 'rig-gone f')
    await removeKeys()
    expect(await redis.hlen(keys.uniqueKeys)).toBeGreaterThan(5_000)
    // Each visit continues where the one before has ended.
    for (let visits = 0; visits < 30; visits++) await removeKeys()
    expect(await redis.hlen(keys.uniqueKeys)).toBe(5_000)
  })
})
