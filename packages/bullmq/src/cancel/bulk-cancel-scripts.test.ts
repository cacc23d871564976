// Tests the janitor's script by itself, on lists and sets that others move while it goes through them.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { LOOK } from './bulk-cancel-scripts.ts'

type Looked = [from: string, before: string, found: number[], ended: string[]] | null

/** A queue whose jobs are named after their first letter: those of `c` are covered. */
function queue() {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  const rule = { id: 'r1', task: 'c', before: 1_000, at: 5_000, reason: 'it was cancelled', end: '"start":0' }
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
    look: async (place: string, from = '', before = '', limit = 3, janitor = 'me'): Promise<Looked> => {
      const { cancelJanitor, active, delayed, prioritized, wait, failed, events, expiries } = keys
      const names = [cancelJanitor, active, delayed, prioritized, wait, failed, events, expiries]
      const fixed = [janitor, 60_000, keys.job(''), keys.cancelProgress(''), JSON.stringify([rule])]
      return (await redis.eval(LOOK, 8, ...names, ...fixed, place, from, before, limit, 10)) as Looked
    },
  }
}

it('goes through the waiting list to its end, and leaves the others in their order', async () => {
  const { redis, keys, waits, look } = queue()
  await waits('c1', 'a1', 'c2', 'a2', 'a3', 'c3', 'c4')
  expect(await look('wait')).toEqual(['1', 'a1', [2], ['c1', 'c', 'c2', 'c']])
  expect(await look('wait', '1', 'a1')).toEqual(['3', 'a3', [1], ['c3', 'c']])
  expect(await look('wait', '3', 'a3')).toEqual(['', '', [1], ['c4', 'c']])
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['a1', 'a2', 'a3'])
  expect(await redis.zrange(keys.failed, 0, '-1')).toEqual(['c1', 'c2', 'c3', 'c4'])
})

it.each([
  ['one before it was removed', 'a1'],
  ['the one before it was removed', 'a3'],
  ['nothing was removed', ''],
])('passes nothing by where %s, and more were added', async (_how, removed) => {
  const { redis, keys, waits, look, add } = queue()
  await waits('a1', 'a2', 'a3', 'c1', 'a4')
  expect(await look('wait')).toEqual(['3', 'a3', [0], []])
  await redis.lrem(keys.wait, 1, removed)
  expect(await redis.lrange(keys.wait, 0, -1)).toContain('c1')
  let [from, before]: [string, string] = ['3', 'a3']
  const found: string[] = []
  await add('a5')
  do {
    const looked = await look('wait', from, before, 3)
    ;[from, before] = looked as NonNullable<Looked>
    found.push(...(looked?.[3] ?? []))
    if (found.length === 0) await redis.lpush(keys.wait, 'a5')
  } while (from !== '')
  expect(found).toEqual(['c1', 'c'])
})

it('goes through a set, though what it has looked at goes, and many are due at once', async () => {
  const { redis, keys, scheduled, look } = queue()
  await scheduled({ a1: 1, c1: 2, a2: 3, a3: 4, c2: 4, c3: 4, a4: 4, c4: 5, a5: 6 })
  expect(await look('delayed')).toEqual(['3', '', [1], ['c1', 'c']])
  await redis.zrem(keys.delayed, 'a1', 'a2')
  expect(await look('delayed', '3')).toEqual(['4', '', [2], ['c2', 'c', 'c3', 'c']])
  expect(await look('delayed', '4')).toEqual(['', '', [1], ['c4', 'c']])
  expect(await redis.zrange(keys.delayed, 0, '-1')).toEqual(['a3', 'a4', 'a5'])
})

it('finds what runs, also at the end of the waiting list, and ends none of it', async () => {
  const { redis, keys, add, look } = queue()
  await add('c1', 'a1')
  await redis.rpush(keys.active, 'c1', 'a1')
  expect(await look('active')).toEqual(['', '', [1], []])
  expect(await look('wait')).toEqual(['', '', [1], []])
  expect(await redis.exists(keys.failed)).toBe(0)
})

it('does nothing while another janitor does it', async () => {
  const { waits, look } = queue()
  await waits('c1')
  expect(await look('active', '', '', 3, 'other')).not.toBe(null)
  expect(await look('wait')).toBe(null)
})
