// Tests the limit on the memory that the records of idempotency keys take, on a Redis of its own.
import { randomBytes, randomUUID } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { idempotencyOf } from '@bullpen/engine/node'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BrokerOptions, BullmqBroker } from '../broker/broker-options.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { short, silent } from '../setup.fixture.ts'
import { RECORD_BYTES } from './idempotency-memory.ts'

const NAMESPACE = 'records'
const QUEUES = [short.queue, 'other']
const MAX_MEMORY = 20_000_000
/** How many records fit into the share of 1%. */
const ROOM = Math.floor(MAX_MEMORY / 100 / RECORD_BYTES)

async function server() {
  const owned = await privateRedis()
  await owned.start()
  const redis = new Redis(owned.url)
  onTestFinished(() => redis.disconnect())
  await redis.config('SET', 'maxmemory', MAX_MEMORY)
  return {
    redis,
    keys: queueKeys(NAMESPACE, short.queue),
    async open(options: Partial<BrokerOptions> = {}) {
      const broker = openPatientBroker({
        redisUrl: owned.url,
        namespace: NAMESPACE,
        queues: QUEUES,
        sizeLimit: 100_000,
        log: silent,
        leads: false,
        idempotencyMemoryShare: 1,
        ...options,
      })
      onTestFinished(() => broker.close())
      await eventually(() => broker.ping().then(() => true))
      return broker
    },
  }
}

function task(key: string | undefined, queue = short.queue): NewTask {
  const now = Date.now()
  const origin = { id: createTaskId(queue, now, randomBytes(10)), enqueuedAt: now, correlationId: undefined }
  const created: NewTask = { ...newTask(short, {}, {}, origin), queue, caller: 'only' }
  if (key === undefined) return created
  return { ...created, idempotency: idempotencyOf({ key, caller: 'ann', request: 'a', life: 86_400 }) }
}

/** Enqueues tasks with new keys until one is refused. Returns how many were accepted. */
async function fill(broker: BullmqBroker): Promise<number> {
  for (let accepted = 0; ; ) {
    const results = await broker.enqueueBulk(Array.from({ length: 100 }, () => task(randomUUID())))
    const refused = results.filter(({ status }) => status === 'rejected')
    accepted += results.length - refused.length
    if (refused.length > 0) return accepted
  }
}

const full = {
  code: 'idempotency_full',
  message: expect.stringMatching(
    /^the task was not accepted: idempotency keys take about 0\.2 MB of .* at redis:\S+, and their limit is 1% of 20\.0 MB; retry /,
  ),
}

describe('when idempotency keys have used up their share of the memory', () => {
  it('a call with a new key is refused and stores nothing', async () => {
    const { redis, keys, open } = await server()
    const refused: unknown[] = []
    const broker = await open({ onRefused: (each) => refused.push(each) })
    const accepted = await fill(broker)
    // The records of calls that are in flight count, too.
    expect(accepted).toBeGreaterThan(ROOM - 200)
    expect(accepted).toBeLessThanOrEqual(ROOM)
    const before = await redis.hget(keys.totals, 'accepted')
    await expect(broker.enqueue(task('new'))).rejects.toMatchObject(full)
    await expect(broker.enqueue(task('new', 'other'))).rejects.toMatchObject(full)
    await expect(broker.enqueueAll([task(undefined), task('new')])).rejects.toMatchObject(full)
    expect(await redis.hget(keys.totals, 'accepted')).toBe(before)
    expect(refused).toContainEqual({ queue: short.queue, code: 'idempotency_full' })
    expect(broker.idempotencyBytes()).toBeGreaterThan((ROOM - 200) * RECORD_BYTES)
  })

  it('a call whose key is remembered gets its result, and calls without a key are accepted', async () => {
    const { open } = await server()
    const broker = await open()
    const first = await broker.enqueue(task('k'))
    await fill(broker)
    expect(await broker.enqueue(task('k'))).toMatchObject({ id: first.id, replayed: { status: 'waiting' } })
    const other = {
      ...task('k'),
      idempotency: { ...idempotencyOf({ key: 'k', caller: 'ann', request: 'b', life: 86_400 }) },
    }
    await expect(broker.enqueue(other)).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    expect(await broker.enqueue(task(undefined))).toMatchObject({ action: 'created' })
  })

  it('another process refuses it, too', async () => {
    const { open } = await server()
    await fill(await open())
    const other = await open()
    await eventually(() =>
      other.enqueue(task(randomUUID())).then(
        () => false,
        ({ code }: { code?: string }) => code === 'idempotency_full',
      ),
    )
    expect(other.idempotencyBytes()).toBeGreaterThan((ROOM - 200) * RECORD_BYTES)
  })

  it('calls are accepted again when records have expired, whose counts are then deleted', async () => {
    const { redis, keys, open } = await server()
    const broker = await open()
    const accepted = await fill(broker)
    const counts = () => redis.hvals(keys.idempotencyCounts)
    await eventually(async () => (await counts()).reduce((sum, each) => sum + Number(each), 0) === accepted)
    await redis.multi().del(keys.idempotencyCounts).hset(keys.idempotencyCounts, '1700000000', accepted).exec()
    await eventually(() => broker.enqueue(task(randomUUID())).then(() => true))
    expect(await redis.hexists(keys.idempotencyCounts, '1700000000')).toBe(0)
    expect(broker.idempotencyBytes()).toBeLessThan(100 * RECORD_BYTES)
  })
})

it('a broker that is closed has counted the records that it stored since the last reading', async () => {
  const { redis, keys, open } = await server()
  const broker = await open()
  await broker.enqueue(task('k'))
  await broker.close()
  expect(Object.values(await redis.hgetall(keys.idempotencyCounts))).toEqual(['1'])
})

describe('a broker that does not check its admission', () => {
  it('stores records in any case', async () => {
    const { redis, keys, open } = await server()
    const broker = await open({ admission: 'open' })
    await redis.hset(keys.idempotencyCounts, '4000000000', 1_000_000)
    expect(await broker.enqueue(task('k'))).toMatchObject({ action: 'created' })
    expect(broker.idempotencyBytes()).toBeUndefined()
  })
})
