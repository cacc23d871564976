// The search for tasks whose worker was lost, as the leader runs it.
import { randomUUID } from 'node:crypto'
import { MAX_LOSSES } from '@bullpen/engine/internal'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { runnerOn, runScript } from '../scripts/script.ts'
import { recoverLostTasks } from './recover.ts'
import { recoverScript } from './scripts.ts'

async function activeTask() {
  const redis = new Redis(inject('redisUrl'))
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  onTestFinished(() => redis.disconnect())
  await redis.hset(keys.job('j'), {
    name: 'a.b',
    data: '{}',
    opts: '{}',
    timestamp: 1,
    ats: 1,
    processedOn: 5,
    pb: 'w1',
  })
  await redis.lpush(keys.active, 'j')
  const { base } = keys
  const options = { base, now: () => 1_000, maxLosses: MAX_LOSSES }
  return { redis, keys, check: (fencing: number) => recoverLostTasks(runnerOn(redis), { ...options, fencing }) }
}

describe('a search for lost tasks', () => {
  it('requeues a task that has no lock in two searches, counts it, and stores the record of its attempt', async () => {
    const { redis, keys, check } = await activeTask()
    await check(1)
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['j'])
    expect(await redis.hget(keys.totals, 'recovered')).toBeNull()
    await check(1)
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['j'])
    expect(await redis.hget(keys.totals, 'recovered')).toBe('1')
    expect(await redis.hmget(keys.job('j'), 'stc', 'stacktrace')).toEqual([
      '1',
      expect.stringMatching(/process_lost.*"worker\\":\\"w1/),
    ])
  })

  // An error message may have been cut off within an emoji. cjson does not decode the half that is left.
  it('stores the record of each lost attempt if the last error of a task contains half of a surrogate pair', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.hset(keys.job('j'), 'stacktrace', JSON.stringify(['Error: an emoji, cut off: \ud83d']))
    await redis.hset(keys.job('k'), { name: 'a.b', data: '{}', opts: '{}', timestamp: 1, ats: 1 })
    await redis.lpush(keys.active, 'k')
    await check(1)
    await check(1)
    for (const id of ['j', 'k']) {
      expect(JSON.parse((await redis.hget(keys.job(id), 'stacktrace')) ?? '')).toContainEqual(
        expect.stringContaining('process_lost'),
      )
    }
  })

  it('leaves a task with a lock alone, and one whose lock was renewed between the searches', async () => {
    const { redis, keys, check } = await activeTask()
    await lockTask(redis, keys, 'j', 'token')
    await check(1)
    await check(1)
    await redis.srem(keys.unrenewed, 'j')
    await unlockTasks(redis, keys, 'j')
    await check(1)
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['j'])
  })

  it('takes place even if a check of a plain BullMQ Worker has just set its own key', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.set(`${keys.base}stalled-check`, 1, 'PX', 60_000)
    await check(1)
    await check(1)
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['j'])
  })

  it('changes nothing for a leader that a newer one has replaced', async () => {
    const { redis, keys, check } = await activeTask()
    await check(1)
    await redis.set(keys.leader, 2)
    await check(1)
    expect(await redis.lrange(keys.active, 0, -1)).toEqual(['j'])
    await check(3)
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['j'])
  })

  it('recovers a task whose earlier stacks cannot be read, and the others', async () => {
    const { redis, keys, check } = await activeTask()
    for (const [i, text] of ['not JSON', '"a text"', 'null'].entries()) {
      await redis.hset(keys.job(`${i}`), { name: 'a.b', data: '{}', ats: 1, stacktrace: text })
      await redis.lpush(keys.active, `${i}`)
    }
    await check(1)
    await check(1)
    expect((await redis.lrange(keys.wait, 0, -1)).toSorted()).toEqual(['0', '1', '2', 'j'])
    const stored = JSON.parse((await redis.hget(keys.job('0'), 'stacktrace')) ?? '')
    expect(stored).toEqual([expect.stringContaining('process_lost')])
  })

  it('takes a lost task whose data has been deleted out of the active ones, and creates no data for it', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.lpush(keys.active, 'deleted')
    await check(1)
    expect(await check(1)).toMatchObject({ ids: ['j'] })
    expect(await redis.exists(keys.active, keys.job('deleted'))).toBe(0)
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['j'])
  })

  it('adds the event of the lost attempt, and notes the return for a cancel by filter that may have passed the task', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.hset(keys.job('j'), { events: 100, tags: '["a"]', group: 'g-1 7', atm: 2 })
    await redis.hset(keys.cancelRules, 'rule', '{}')
    await check(1)
    await check(1)
    const [[, fields] = expect.fail()] = await redis.xrange(keys.taskEvents, '-', '+')
    expect(fields.slice(0, 3)).toEqual(['id', 'j', 'event'])
    expect(JSON.parse(fields[3] ?? '')).toEqual({
      ...{ type: 'requeued', task: 'a.b', tags: ['a'], group: { id: 'g-1', member: 7 }, attempt: 3, fencingToken: 1 },
      ...{ outcome: 'panicked', error: { code: 'process_lost', message: 'the worker was lost' } },
    })
    expect(await redis.smembers(keys.cancelReturned)).toEqual(['j'])
  })

  // The lane has no reason to wake a worker, because it has had tasks all the time.
  it('wakes a worker if the task leaves a place of a full queue, and returns to a lane in which others wait', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.hset(keys.meta, 'concurrency', '1')
    await redis.hset(keys.job('j'), 'lane', '1 customer')
    await redis.lpush(keys.lane('customer'), 'waiting')
    await redis.zadd(keys.lanes, 1, 'customer')
    await redis.zadd(keys.turns, 0, 'customer')
    await check(1)
    expect(await redis.exists(keys.marker)).toBe(0)
    await check(1)
    expect(await redis.lrange(keys.lane('customer'), 0, -1)).toEqual(['waiting', 'j'])
    expect(await redis.zscore(keys.marker, '0')).toBe('0')
  })

  it('forgets the mark of a task that is not active any more', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.sadd(keys.unrenewed, 'removed')
    expect(await check(1)).toMatchObject({ ids: [] })
    expect(await redis.smembers(keys.unrenewed)).toEqual(['j'])
    expect(await redis.exists(keys.wait)).toBe(0)
  })

  it('says when the first lock expires that has not been renewed since the search before', async () => {
    const { redis, keys, check } = await activeTask()
    await redis.lpush(keys.active, 'k', 'renewed')
    for (const id of ['j', 'k', 'renewed']) await lockTask(redis, keys, id, 'token', id === 'k' ? 40_000 : 50_000)
    expect(await check(1)).toMatchObject({ ids: [], expiresInMs: null })
    await lockTask(redis, keys, 'renewed', 'token', 30_000)
    await redis.srem(keys.unrenewed, 'renewed')
    const { expiresInMs } = await check(1)
    expect(expiresInMs).toBeGreaterThan(30_000)
    expect(expiresInMs).toBeLessThanOrEqual(40_000)
  })
})

type Stage = Awaited<ReturnType<typeof activeTask>>
const bullmqLock = ({ redis, keys }: Stage) => redis.set(keys.lock('j'), 'token', 'PX', 60_000)

describe("the tasks that a search finds in the hands of Workers without Bullpen's backend", () => {
  it.each([
    ['are those with a lock of BullMQ', bullmqLock, ['j']],
    ['are none with a lock of Bullpen', ({ redis, keys }: Stage) => lockTask(redis, keys, 'j'), []],
  ])('%s', async (_name, lock, found) => {
    const one = await activeTask()
    const { redis, keys, check } = one
    await lock(one)
    expect((await check(1)).unattached.size).toBe(0)
    expect([...(await check(1)).unattached.keys()]).toEqual(found)
    await redis.srem(keys.unrenewed, 'j')
    expect((await check(1)).unattached.size).toBe(0)
  })
})

describe('a search among many active tasks', () => {
  /** Active tasks of which every second one has lost its worker. */
  async function manyTasks(count: number) {
    const one = await activeTask()
    const { redis, keys } = one
    await redis.del(keys.active)
    const ids = Array.from({ length: count }, (_, i) => `task-${i}`)
    const filling = redis.pipeline().rpush(keys.active, ...ids)
    for (const [i, id] of ids.entries()) {
      filling.hset(keys.job(id), {
        name: 'a.b',
        data: '{}',
        ats: 1,
        lock: i % 2 === 0 ? `${Date.now() + 600_000} token` : '',
      })
    }
    await filling.exec()
    const run = async (position: string) => {
      const args = { base: keys.base, now: 1_000, maxLosses: MAX_LOSSES, fencing: 1, checkMs: '', position }
      const [next, , , ...returned] = await runScript(redis, recoverScript, keys, args)
      return { next, returned }
    }
    return { ...one, ids, lost: ids.filter((_, i) => i % 2 === 1), run }
  }

  it('marks all of them, and then returns each lost one once, at most 50 in one run', async () => {
    const { redis, keys, ids, lost, check, run } = await manyTasks(2_500)
    expect(await check(1)).toMatchObject({ ids: [] })
    expect(await redis.scard(keys.unrenewed)).toBe(ids.length)
    const pages: string[][] = []
    for (let position = '0 0'; position !== ''; ) {
      const { next, returned } = await run(position)
      pages.push(returned)
      position = next
    }
    expect(pages.flat().toSorted()).toEqual(lost.toSorted())
    expect(Math.max(...pages.map(({ length }) => length))).toBe(50)
    expect((await redis.lrange(keys.wait, 0, -1)).toSorted()).toEqual(lost.toSorted())
    expect(await redis.llen(keys.active)).toBe(ids.length - lost.length)
    expect(await redis.hget(keys.totals, 'recovered')).toBe(`${lost.length}`)
    expect(await redis.scard(keys.unrenewed)).toBe(ids.length - lost.length)
  })

  it('returns fewer in one run if their list is long', async () => {
    const { redis, keys, lost, run } = await manyTasks(20)
    await redis.sadd(keys.unrenewed, ...lost)
    const filler = Array.from({ length: 30_000 }, (_, i) => `other-${i}`)
    await redis.lpush(keys.active, ...filler)
    const first = await run('0 0')
    expect(first.returned).toHaveLength(3)
    const second = await run(first.next)
    expect(second.returned).toHaveLength(3)
    expect(lost).toEqual(expect.arrayContaining([...first.returned, ...second.returned]))
  })

  it('stops between two runs if the term of the leader is over', async () => {
    const { redis, keys, ids } = await manyTasks(1_500)
    const check = { base: keys.base, now: () => 1_000, maxLosses: MAX_LOSSES, fencing: 1, isOver: () => true }
    await recoverLostTasks(runnerOn(redis), check)
    expect(await redis.scard(keys.unrenewed)).toBe(1_000)
    expect(ids).toHaveLength(1_500)
  })
})
