// Scans lists and sets that change meanwhile, page by page.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { endOf } from '../codec.ts'
import { queueKeys } from '../keys.ts'
import { endedTasks } from '../scripts/ended-tasks.ts'
import { runScript } from '../scripts/script.ts'
import { cancelPageScript } from '../store/scripts.ts'

/** A queue whose jobs are named after the first letter of their id. The rule matches `c`, and the tag if there is one. */
function queue(tag?: string) {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  const rule = { id: 'r1', task: 'c', tag, before: 1_000, at: 5_000, ...endOf('cancelled', { process: 'test' }) }
  const add = async (...ids: string[]): Promise<void> => {
    for (const id of ids) await redis.hset(keys.job(id), { name: id[0], timestamp: 1_000 })
  }
  return {
    redis,
    keys,
    async waits(...ids: string[]): Promise<void> {
      await add(...ids)
      await redis.rpush(keys.wait, ...ids)
    },
    async scheduled(scores: Readonly<Record<string, number>>): Promise<void> {
      await add(...Object.keys(scores))
      for (const [id, score] of Object.entries(scores)) await redis.zadd(keys.delayed, score, id)
    },
    add,
    async page(place: string, from = '', before = '', limit = 3, fencing = 1, request: string = randomUUID()) {
      const names = { ...keys, endReply: keys.endReply('test') }
      const args = { fencing, base: keys.base, progress: keys.cancelProgress('') }
      const rulesText = JSON.stringify([rule])
      const page = await runScript(redis, cancelPageScript, names, {
        ...args,
        rulesText,
        place,
        from,
        before,
        limit,
        request,
      })
      if (page === null) return undefined
      const [next, last, matched, ended] = page
      return { from: next, before: last, matched, ended: endedTasks(ended).map(({ id, task }) => `${id} ${task}`) }
    },
  }
}

const END = { from: '', before: '' }

it('a scan of the waiting list ends matching tasks and keeps the order of the others', async () => {
  const { redis, keys, waits, page } = queue()
  await waits('c1', 'a1', 'c2', 'a2', 'a3', 'c3', 'c4')
  expect(await page('wait')).toEqual({ from: '1', before: 'a1', matched: [2], ended: ['c1 c', 'c2 c'] })
  expect(await page('wait', '1', 'a1')).toEqual({ from: '3', before: 'a3', matched: [1], ended: ['c3 c'] })
  expect(await page('wait', '3', 'a3')).toEqual({ ...END, matched: [1], ended: ['c4 c'] })
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['a1', 'a2', 'a3'])
  expect(await redis.zrange(keys.cancelled, 0, '-1')).toEqual(['c1', 'c2', 'c3', 'c4'])
})

it.each([
  ['a task before the position was removed', 'a1'],
  ['the task just before the position was removed', 'a3'],
  ['nothing was removed', ''],
])('a scan skips no waiting task when %s and others were added', async (_how, removed) => {
  const { redis, keys, waits, page, add } = queue()
  await waits('a1', 'a2', 'a3', 'c1', 'a4')
  expect(await page('wait')).toEqual({ from: '3', before: 'a3', matched: [0], ended: [] })
  await redis.lrem(keys.wait, 1, removed)
  let next = { from: '3', before: 'a3' }
  const ended: string[] = []
  await add('a5')
  do {
    const found = (await page('wait', next.from, next.before)) ?? expect.fail()
    next = found
    ended.push(...found.ended)
    if (ended.length === 0) await redis.lpush(keys.wait, 'a5')
  } while (next.from !== '')
  expect(ended).toEqual(['c1 c'])
})

it('a scan of a sorted set looks at no more tasks than one page, although they share a score and others leave', async () => {
  const { redis, keys, scheduled, page } = queue()
  await scheduled({ a1: 1, c1: 2, a2: 3, a3: 4, a4: 4, a5: 4, c2: 4, c3: 4, c4: 5, c5: 5, c6: 5, a6: 6 })
  expect(await page('delayed')).toEqual({ from: '3', before: 'a2', matched: [1], ended: ['c1 c'] })
  await redis.zrem(keys.delayed, 'a1', 'a2')
  expect(await page('delayed', '3', 'a2')).toEqual({ from: '4', before: 'a5', matched: [0], ended: [] })
  expect(await page('delayed', '4', 'a5')).toEqual({
    from: '4',
    before: 'a5',
    matched: [3],
    ended: ['c2 c', 'c3 c', 'c4 c'],
  })
  expect(await page('delayed', '4', 'a5')).toEqual({ from: '6', before: 'a6', matched: [2], ended: ['c5 c', 'c6 c'] })
  expect(await page('delayed', '6', 'a6')).toEqual({ ...END, matched: [0], ended: [] })
  expect(await redis.zrange(keys.delayed, 0, '-1')).toEqual(['a3', 'a4', 'a5', 'a6'])
})

describe('the end of a task may change what follows for another one of its page', () => {
  it('a parent that the end of its child has started stays in the waiting list', async () => {
    const { redis, keys, scheduled, page } = queue()
    await scheduled({ c1: 1, c2: 2 })
    // Both were delayed after a first attempt.
    await redis.hset(
      keys.job('c1'),
      'parent',
      JSON.stringify({ id: 'c2', queueKey: keys.base.slice(0, -1), fpof: true }),
    )
    await redis.sadd(`${keys.job('c2')}:dependencies`, keys.job('c1'))
    expect(await page('delayed')).toEqual({ ...END, matched: [1], ended: ['c1 c'] })
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['c2'])
    expect(await redis.zrange(keys.cancelled, 0, '-1')).toEqual(['c1'])
  })

  it('the next job with a deduplication id is added once', async () => {
    const { redis, keys, waits, page } = queue()
    await waits('c1', 'c2')
    for (const id of ['c1', 'c2']) await redis.hset(keys.job(id), 'deid', 'one')
    await redis.hset(`${keys.base}dn:one`, { name: 'x', data: '{}', opts: '{}', jid: 'next' })
    expect(await page('wait')).toEqual({ ...END, matched: [2], ended: ['c1 c', 'c2 c'] })
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['next'])
    expect(await redis.hget(keys.totals, 'accepted')).toBe('1')
  })
})

describe('a scan of the running tasks', () => {
  it('counts those that match page by page, and ends none of them', async () => {
    const { redis, keys, add, page } = queue()
    await add('a1', 'c1', 'a2', 'c2')
    await redis.rpush(keys.active, 'a1', 'c1', 'a2', 'c2')
    expect(await page('active')).toEqual({ from: '3', before: 'a2', matched: [1], ended: [] })
    // Another task is fetched, and one before the position ends.
    await redis.lpush(keys.active, 'a3')
    await redis.lrem(keys.active, 1, 'a1')
    expect(await page('active', '3', 'a2')).toEqual({ ...END, matched: [1], ended: [] })
    expect(await redis.exists(keys.failed)).toBe(0)
  })

  it('counts each rule as one that matches if it cannot tell where to go on', async () => {
    const { redis, keys, add, page } = queue()
    await add('a1', 'a2', 'a3', 'a4')
    await redis.rpush(keys.active, 'a1', 'a2', 'a3', 'a4')
    expect(await page('active')).toMatchObject({ from: '3', before: 'a3', matched: [0] })
    await redis.lrem(keys.active, 1, 'a3')
    expect(await page('active', '3', 'a3')).toEqual({ ...END, matched: [1], ended: [] })
  })
})

it('a tag of a rule is compared as a whole, whatever characters it has', async () => {
  const { redis, keys, waits, page } = queue('a"b%d')
  await waits('c1', 'c2', 'c3')
  await redis.hset(keys.job('c1'), 'tags', JSON.stringify(['x', 'a"b%d']))
  await redis.hset(keys.job('c2'), 'tags', JSON.stringify(['a"b%dx']))
  expect((await page('wait', '', '', 10))?.ended).toEqual(['c1 c'])
})

it('a page is scanned although a tag contains half of a surrogate pair, which cjson does not decode', async () => {
  const { redis, keys, waits, page } = queue('x')
  await waits('c1', 'c2')
  await redis.hset(keys.job('c1'), 'tags', JSON.stringify(['\ud83d', 'x']))
  await redis.hset(keys.job('c2'), 'tags', JSON.stringify(['\ud83d']))
  expect((await page('wait', '', '', 10))?.ended).toEqual(['c1 c'])
})

it('a page that ended tasks is the same when it is asked for again because its reply was lost', async () => {
  const { redis, keys, waits, page } = queue()
  await waits('c1', 'a1', 'c2')
  const first = await page('wait', '', '', 3, 1, 'r1')
  expect(first?.ended).toEqual(['c1 c', 'c2 c'])
  await waits('c3')
  expect(await page('wait', '', '', 3, 1, 'r1')).toEqual(first)
  // Also for a leader that has been replaced in the meantime.
  await redis.set(keys.leader, 2)
  expect(await page('wait', '', '', 3, 1, 'r1')).toEqual(first)
  expect(await page('wait', '', '', 3, 2, 'r2')).toMatchObject({ matched: [1], ended: ['c3 c'] })
  expect(await redis.hget(keys.cancelProgress('r1'), 'ended')).toBe('3')
})

it('nothing is done for a leader that a newer one has replaced', async () => {
  const { redis, keys, waits, page } = queue()
  await waits('c1')
  expect(await page('active', '', '', 3, 2)).toBeDefined()
  expect(await page('wait', '', '', 3, 1)).toBeUndefined()
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['c1'])
  expect(await page('wait', '', '', 3, 2)).toEqual({ ...END, matched: [1], ended: ['c1 c'] })
})
