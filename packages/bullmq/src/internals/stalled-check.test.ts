// The search for tasks whose worker was lost, as the leader runs it with BullMQ's own script.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { requeueLostTasks } from './stalled-check.ts'

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
  return { redis, keys, check: (fencing: number) => requeueLostTasks(redis, keys, { fencing, now: 1_000 }) }
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
    await redis.set(keys.lock('j'), 'token')
    await check(1)
    await check(1)
    await redis.srem(keys.stalled, 'j')
    await redis.del(keys.lock('j'))
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
})
