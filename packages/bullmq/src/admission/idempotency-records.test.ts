// Tests how long the records of idempotency keys live, where they are, and how much memory they take.
import { randomBytes, randomUUID } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { Idempotency } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { long, silent } from '../setup.fixture.ts'
import { periodLength, recordExpiry, recordHash } from './idempotency-records.ts'

const LIFE_S = 86_400
const PERIOD_S = LIFE_S / 2

async function openQueue() {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const broker = openPatientBroker({ redisUrl, namespace, queues: ['rig'], sizeLimit: 10_000, log: silent })
  const redis = new Redis(redisUrl)
  const { base } = queueKeys(namespace, 'rig')
  onTestFinished(async () => {
    const keys = await redis.keys(`${base}*`)
    for (let i = 0; i < keys.length; i += 1_000) await redis.unlink(keys.slice(i, i + 1_000))
    await broker.close()
    redis.disconnect()
  })
  await eventually(() => broker.ping().then(() => true))
  const enqueue = (idempotency?: Idempotency) => {
    const origin = {
      id: createTaskId('rig', Date.now(), randomBytes(10)),
      enqueuedAt: Date.now(),
      correlationId: undefined,
    }
    return broker.enqueue({ ...newTask(long, {}, {}, origin), caller: 'only', idempotency })
  }
  const period = async () => Math.floor(Number((await redis.time())[0]) / PERIOD_S)
  return { redis, base, enqueue, period }
}

const idempotency = (key: string, life = LIFE_S): Idempotency =>
  idempotencyOf({ key, caller: 'ann', request: 'a', life })

describe('the record of an idempotency key', () => {
  it.each([1, 2, 3, 4, 5, 86_399])('with a life of %i s is found and kept for at least that time', (life) => {
    const length = periodLength(life)
    for (let now = 0; now < 3 * length; now += Math.ceil(length / 10)) {
      const periods = Math.floor((now + life) / length) - Math.floor(now / length)
      expect(periods).toBeLessThanOrEqual(2)
      expect(recordExpiry(life, now)).toBeGreaterThanOrEqual(now + life)
      // When its period's number is used again, the record has expired.
      expect(recordExpiry(life, now)).toBeLessThanOrEqual((Math.floor(now / length) + 4) * length)
    }
  })

  it('is in a hash of the current period, which expires between one life and 1.5 lives later', async () => {
    const { redis, base, enqueue, period } = await openQueue()
    const wanted = idempotency('k')
    const now = await period()
    const { id } = await enqueue(wanted)
    const hash = base + recordHash(LIFE_S, wanted.key, now * PERIOD_S)
    expect(await redis.hget(hash, wanted.key)).toBe(`${wanted.request}cw0000000${id.slice('rig-'.length)}`)
    const ttl = await redis.ttl(hash)
    expect(ttl).toBeGreaterThanOrEqual(LIFE_S - 1)
    expect(ttl).toBeLessThanOrEqual(LIFE_S + PERIOD_S)
    // Later records of the same period do not postpone the expiry.
    const expiresAt = await redis.expiretime(hash)
    await redis.hset(hash, 'other', '')
    await redis.hdel(hash, wanted.key)
    await enqueue(wanted)
    expect(await redis.expiretime(hash)).toBe(expiresAt)
  })

  it.each([
    [0, true],
    [-1, true],
    [-2, true],
    [-3, false],
    [1, false],
  ])('in a hash that is %i periods away is found: %s', async (away, isFound) => {
    const { redis, base, enqueue, period } = await openQueue()
    const wanted = idempotency('k')
    const unique = createTaskId('rig', 1, randomBytes(10)).slice('rig-'.length)
    const hash = base + recordHash(LIFE_S, wanted.key, ((await period()) + away) * PERIOD_S)
    await redis.hset(hash, wanted.key, `${wanted.request}cs00sz9ls${unique}`)
    const answer = await enqueue(wanted)
    expect(answer.id === `rig-${unique}`).toBe(isFound)
    expect(answer.replayed).toEqual(isFound ? { status: 'scheduled' } : undefined)
    expect(answer.expectedStartAt).toBe(isFound ? Number.parseInt('sz9ls', 36) * 1_000 : undefined)
  })

  it('with another life is another record', async () => {
    const { enqueue } = await openQueue()
    const ids = [
      await enqueue(idempotency('k')),
      await enqueue(idempotency('k', 600)),
      await enqueue(idempotency('k', 600)),
    ]
    expect(new Set(ids.map(({ id }) => id)).size).toBe(2)
  })

  it('takes at most 150 bytes if there are many', async () => {
    const { redis, base, enqueue } = await openQueue()
    const stored = async (): Promise<number> => {
      const keys = await redis.keys(`${base}idempotency:*`)
      const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
      return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
    }
    const count = 30_000
    for (let sent = 0; sent < count; sent += 200) {
      await Promise.all(Array.from({ length: 200 }, (_, i) => enqueue(idempotency(`${sent + i}`))))
    }
    expect((await stored()) / count).toBeLessThan(150)
  })
})
