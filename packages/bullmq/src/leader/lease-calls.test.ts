// The lease in Redis: one holder, a number that grows with each new leader, and no leader that is older than the data.
import { randomUUID } from 'node:crypto'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { leaderKeys, SCHEMA_VERSION } from '../keys.ts'
import { awaitLease, hasLease, resign, takeLease } from './lease-calls.ts'

function namespace() {
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const keys = leaderKeys(`t-${randomUUID().slice(0, 12)}`)
  return {
    redis,
    keys,
    take: (holder: string, { leaseMs = 60_000, above = 0 } = {}) => takeLease(redis, keys, { holder, leaseMs, above }),
  }
}

it('a lease has one holder, who renews it under the same number', async () => {
  const { take } = namespace()
  expect(await take('one')).toEqual({ fencing: 1, leftMs: 60_000, newest: 1 })
  const refused = await take('other')
  expect(refused).toMatchObject({ fencing: 0, newest: 1 })
  expect(refused.leftMs).toBeGreaterThan(50_000)
  expect(await take('one')).toEqual({ fencing: 1, leftMs: 60_000, newest: 1 })
})

it('the number grows when the lease has expired, and when its holder has resigned', async () => {
  const { take, redis, keys } = namespace()
  await take('one', { leaseMs: 20 })
  await eventually(async () => (await take('other')).fencing === 2)
  await resign(redis, keys, 'one')
  expect((await take('one')).fencing).toBe(0)
  await resign(redis, keys, 'other')
  expect((await take('one')).fencing).toBe(3)
})

it('a holder whose number is below the one that a queue has stored gets a higher number', async () => {
  const { take } = namespace()
  await take('one')
  expect((await take('one', { above: 7 })).fencing).toBe(8)
  expect((await take('one', { above: 7 })).fencing).toBe(8)
})

it('a process that is older than the stored data does not lead', async () => {
  const { take, redis, keys } = namespace()
  await redis.set(keys.schema, SCHEMA_VERSION + 1)
  expect((await take('one')).fencing).toBe(0)
  await redis.set(keys.schema, SCHEMA_VERSION)
  expect((await take('one')).fencing).toBe(1)
})

it('a namespace without a leader may get one in time', async () => {
  const { take, redis, keys } = namespace()
  const name = keys.lease.slice(1, keys.lease.indexOf('}'))
  expect(await hasLease(redis, name)).toBe(false)
  const looks = [false, false, true]
  expect(await awaitLease(async () => looks.shift() ?? false)).toBe(true)
  expect(looks).toEqual([])
  await take('one')
  expect(await hasLease(redis, name)).toBe(true)
})
