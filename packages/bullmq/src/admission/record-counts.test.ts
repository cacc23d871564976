// Tests how the records of idempotency keys are counted, on a real Redis.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { recordExpiry } from './idempotency-records.ts'
import { countedUntil, createRecordCounts } from './record-counts.ts'

const DAY_S = 86_400
const NOW_S = 4_000_000_000

function setup() {
  const redis = new Redis(inject('redisUrl'))
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const keys = queueKeys(namespace, 'a').idempotencyCounts
  onTestFinished(async () => {
    await redis.del(keys)
    redis.disconnect()
  })
  const open = () => createRecordCounts({ redis, namespace, queues: ['a'], now: () => NOW_S * 1_000 })
  return { redis, keys, open }
}

it.each([
  [600, 60],
  [DAY_S, 60],
  [DAY_S + 1, 120],
  [30 * DAY_S, 1_920],
])('a record with a life of %i s is counted until it expires, rounded up to %i s', (life, unit) => {
  for (let now = NOW_S; now < NOW_S + 5_000; now += 7) {
    const until = countedUntil(life, now)
    expect(until % unit).toBe(0)
    expect(until).toBeGreaterThanOrEqual(recordExpiry(life, now))
    expect(until).toBeLessThan(recordExpiry(life, now) + unit)
  }
})

it('processes together count each record that was stored once, and none that was not', async () => {
  const { redis, keys, open } = setup()
  const [one, two] = [open(), open()]
  expect(one.isKnown()).toBe(false)
  for (const isStored of [true, true, false]) one.expect('a', DAY_S)(isStored)
  two.expect('a', 600)(true)
  const pending = two.expect('a', 600)
  expect([one.records(), two.records()]).toEqual([2, 2])
  await one.exchange()
  await two.exchange()
  expect([one.records(), two.records()]).toEqual([2, 4])
  pending(false)
  await one.exchange()
  await two.exchange()
  expect([one.records(), two.records()]).toEqual([3, 3])
  expect(await redis.hgetall(keys)).toEqual({
    [countedUntil(DAY_S, NOW_S)]: '2',
    [countedUntil(600, NOW_S)]: '1',
  })
})

it('a record that is stored during a reading is counted by the next one', async () => {
  const { open } = setup()
  const counts = open()
  counts.expect('a', DAY_S)(true)
  const reading = counts.exchange()
  counts.expect('a', DAY_S)(true)
  await reading
  expect(counts.records()).toBe(2)
  await counts.exchange()
  expect(counts.records()).toBe(2)
})

it('records whose reading fails are counted by the next one', async () => {
  const { redis, keys, open } = setup()
  const counts = open()
  counts.expect('a', DAY_S)(true)
  await redis.set(keys, 'not a hash')
  await expect(counts.exchange()).rejects.toThrow('WRONGTYPE')
  expect(counts.records()).toBe(1)
  await redis.del(keys)
  await counts.exchange()
  expect(counts.records()).toBe(1)
  expect(Object.values(await redis.hgetall(keys))).toEqual(['1'])
})

it('a flush counts the records that no reading has counted, once', async () => {
  const { redis, keys, open } = setup()
  const counts = open()
  await counts.flush()
  expect(await redis.exists(keys)).toBe(0)
  counts.expect('a', DAY_S)(true)
  await counts.flush()
  await counts.flush()
  expect(Object.values(await redis.hgetall(keys))).toEqual(['1'])
})

it('the counts of expired records are deleted', async () => {
  const { redis, keys, open } = setup()
  await redis.hset(keys, '1700000000', 7, `${NOW_S}`, 2)
  const counts = open()
  await counts.exchange()
  expect(counts.records()).toBe(2)
  expect(await redis.hkeys(keys)).toEqual([`${NOW_S}`])
})
