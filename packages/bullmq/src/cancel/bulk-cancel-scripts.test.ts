// Tests the scripts of the bulk canceller on lists and sets that change while they are scanned.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { END_PAGE } from './bulk-cancel-scripts.ts'

type Page = [from: string, before: string, matched: number[], ended: string[]] | null

/** A queue whose jobs are named after the first letter of their id. The rule matches `c`. */
function queue() {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  const rule = { id: 'r1', task: 'c', before: 1_000, at: 5_000, reason: 'it was cancelled', record: '"fencingToken":0' }
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
    endPage: async (place: string, from = '', before = '', limit = 3, fencing = 1): Promise<Page> => {
      const { leader, active, delayed, prioritized, wait, failed, events, expiries } = keys
      const names = [leader, active, delayed, prioritized, wait, failed, events, expiries]
      const common = [fencing, keys.job(''), keys.cancelProgress(''), JSON.stringify([rule])]
      return (await redis.eval(END_PAGE, 8, ...names, ...common, place, from, before, limit, 10)) as Page
    },
  }
}

it('END_PAGE ends matching tasks of the whole waiting list and keeps the order of the others', async () => {
  const { redis, keys, waits, endPage } = queue()
  await waits('c1', 'a1', 'c2', 'a2', 'a3', 'c3', 'c4')
  expect(await endPage('wait')).toEqual(['1', 'a1', [2], ['c1', 'c', 'c2', 'c']])
  expect(await endPage('wait', '1', 'a1')).toEqual(['3', 'a3', [1], ['c3', 'c']])
  expect(await endPage('wait', '3', 'a3')).toEqual(['', '', [1], ['c4', 'c']])
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['a1', 'a2', 'a3'])
  expect(await redis.zrange(keys.failed, 0, '-1')).toEqual(['c1', 'c2', 'c3', 'c4'])
})

it.each([
  ['a task before the position was removed', 'a1'],
  ['the task just before the position was removed', 'a3'],
  ['nothing was removed', ''],
])('END_PAGE skips no waiting task when %s and others were added', async (_how, removed) => {
  const { redis, keys, waits, endPage, add } = queue()
  await waits('a1', 'a2', 'a3', 'c1', 'a4')
  expect(await endPage('wait')).toEqual(['3', 'a3', [0], []])
  await redis.lrem(keys.wait, 1, removed)
  expect(await redis.lrange(keys.wait, 0, -1)).toContain('c1')
  let [from, before]: [string, string] = ['3', 'a3']
  const ended: string[] = []
  await add('a5')
  do {
    const page = await endPage('wait', from, before, 3)
    ;[from, before] = page as NonNullable<Page>
    ended.push(...(page?.[3] ?? []))
    if (ended.length === 0) await redis.lpush(keys.wait, 'a5')
  } while (from !== '')
  expect(ended).toEqual(['c1', 'c'])
})

it('END_PAGE scans a sorted set although tasks leave it and many share a score', async () => {
  const { redis, keys, scheduled, endPage } = queue()
  await scheduled({ a1: 1, c1: 2, a2: 3, a3: 4, c2: 4, c3: 4, a4: 4, c4: 5, a5: 6 })
  expect(await endPage('delayed')).toEqual(['3', '', [1], ['c1', 'c']])
  await redis.zrem(keys.delayed, 'a1', 'a2')
  expect(await endPage('delayed', '3')).toEqual(['4', '', [2], ['c2', 'c', 'c3', 'c']])
  expect(await endPage('delayed', '4')).toEqual(['', '', [1], ['c4', 'c']])
  expect(await redis.zrange(keys.delayed, 0, '-1')).toEqual(['a3', 'a4', 'a5'])
})

it('END_PAGE counts running tasks, also at the end of the waiting list, and ends none of them', async () => {
  const { redis, keys, add, endPage } = queue()
  await add('c1', 'a1')
  await redis.rpush(keys.active, 'c1', 'a1')
  expect(await endPage('active')).toEqual(['', '', [1], []])
  expect(await endPage('wait')).toEqual(['', '', [1], []])
  expect(await redis.exists(keys.failed)).toBe(0)
})

it('END_PAGE does nothing for a leader that a newer one has replaced', async () => {
  const { redis, keys, waits, endPage } = queue()
  await waits('c1')
  expect(await endPage('active', '', '', 3, 2)).not.toBe(null)
  expect(await endPage('wait', '', '', 3, 1)).toBe(null)
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['c1'])
  expect(await endPage('wait', '', '', 3, 2)).toEqual(['', '', [1], ['c1', 'c']])
})
