// How the bulk canceller saves passes while only running tasks match a rule.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { createBulkCanceller, FULL_PASS_EVERY_MS } from './bulk-canceller.ts'

it('while a task that a rule matches is running, a pass now and then ends those that have come back', async () => {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  const rule = { id: 'rule', queue: 'q', task: 'match', before: 1_000, reason: 'cancelled', by: 'me', at: 1 }
  await redis.hset(keys.cancelRules, rule.id, JSON.stringify(rule))
  const add = (id: string) => redis.hset(keys.job(id), { name: 'match', timestamp: 1_000 })
  const ended: string[] = []
  let now = 0
  const onEnded = ({ id }: { readonly id: string }): void => void ended.push(id)
  const canceller = createBulkCanceller({ redis, keys, caller: 'test', clock: () => now, onEnded })
  const term = { fencing: 1, isOver: () => false }

  await add('running')
  await redis.lpush(keys.active, 'running')
  await canceller(term)
  await add('back')
  await redis.lpush(keys.wait, 'back')
  now += FULL_PASS_EVERY_MS - 1
  await canceller(term)
  expect(ended).toEqual([])
  now += 1
  await canceller(term)
  expect(ended).toEqual(['back'])
  // As long as the task is running, the rule is kept.
  expect(await redis.hkeys(keys.cancelRules)).toEqual(['rule'])
  await redis.del(keys.active)
  now += FULL_PASS_EVERY_MS
  await canceller(term)
  expect(await redis.exists(keys.cancelRules)).toBe(0)
})
