// Tests that a queue whose outbox is full is closed for fetching, and opens again.
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { applySettings } from '../fleet/queue-settings.ts'
import { LEADER_TIMES } from '../leader/leader.ts'
import { countRemaining } from '../queries/counts.ts'
import { silent } from '../setup.fixture.ts'
import { openQueues } from './outbox.fixture.ts'
import { CLOSED_BY_OUTBOX, MAX_OUTBOX_BYTES, MAX_OUTBOX_ENTRIES } from './outbox-bounds.ts'

const command = (action: 'pause' | 'resume', sequence: number) =>
  ({ id: `c${sequence}`, spec: { action, queue: 'source' }, by: 'ann', sequence: `${sequence}`, at: 0 }) as const

it.each([
  ['entries', MAX_OUTBOX_ENTRIES, 0],
  ['bytes', 0, MAX_OUTBOX_BYTES],
])(
  'a queue is closed when its outbox has reached the maximum number of %s, and opens when it is half empty',
  async (_, count, bytes) => {
    const { release, forwarder, enqueue, redis, keys, entries } = await openQueues()
    const { meta, marker, outbox, totals } = keys.source
    const fill = redis.pipeline()
    for (let i = 1; i < count; i++) fill.xadd(outbox, '*', 'e', 'w')
    await fill.exec()
    if (bytes > 0) await redis.hset(totals, 'outboxBytes', bytes - 10)
    await enqueue()
    expect(await redis.hget(meta, 'paused')).toBeNull()
    await release(1)
    expect(await redis.hget(meta, 'paused')).toBe(CLOSED_BY_OUTBOX)
    expect(await redis.exists(marker)).toBe(0)
    // Ends are not refused.
    await release(1)
    if (count > 0) await redis.xtrim(outbox, 'MAXLEN', count / 2 + 2)
    expect(await redis.hget(meta, 'paused')).toBe(CLOSED_BY_OUTBOX)
    await forwarder().forwardLeft()
    expect(await redis.hget(meta, 'paused')).toBeNull()
    // A worker that waits for the marker fetches the waiting task.
    expect(await redis.exists(marker)).toBe(1)
    expect(await entries()).toBe(count === 0 ? 0 : count / 2)
  },
)

it('a pause by command outlasts a full outbox', async () => {
  const { release, forwarder, redis, keys } = await openQueues()
  const { meta, totals } = keys.source
  await redis.hset(totals, 'outboxBytes', MAX_OUTBOX_BYTES)
  await release(1)
  await applySettings(redis, keys.source, command('pause', 1))
  expect(await redis.hget(meta, 'paused')).toBe('1')
  await forwarder().forwardLeft()
  expect(await redis.hget(meta, 'paused')).toBe('1')
  await applySettings(redis, keys.source, command('resume', 2))
  expect(await redis.hget(meta, 'paused')).toBeNull()
})

it('a light drain waits until the outbox is empty', async () => {
  const { release, forwarder, redis, keys } = await openQueues()
  expect(await countRemaining(redis, keys.source)).toBe(0)
  await release(2)
  expect(await countRemaining(redis, keys.source)).toBe(2)
  await forwarder().forwardLeft()
  expect(await countRemaining(redis, keys.source)).toBe(0)
})

it('the leader opens a queue whose full outbox somebody has deleted', async () => {
  const { release, enqueue, redis, keys, namespace, redisUrl } = await openQueues()
  const { meta, marker, outbox, totals } = keys.source
  await redis.hset(totals, 'outboxBytes', MAX_OUTBOX_BYTES)
  await release(1)
  await enqueue()
  expect(await redis.hget(meta, 'paused')).toBe(CLOSED_BY_OUTBOX)
  await redis.del(outbox)
  const leaderTimes = { ...LEADER_TIMES, roundMs: 100 }
  const leader = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['source'],
    sizeLimit: 10_000,
    leaderTimes,
    log: silent,
  })
  await eventually(async () => (await redis.hget(meta, 'paused')) === null)
  expect([await redis.exists(marker), await redis.hget(totals, 'outboxBytes')]).toEqual([1, null])
  await leader.close()
})

it('the leader forwards entries that no worker has forwarded', async () => {
  const { release, added, entries, namespace, redisUrl } = await openQueues()
  await release(3)
  const queues = ['source', 'target']
  const leaderTimes = { ...LEADER_TIMES, roundMs: 100 }
  const leader = openPatientBroker({ redisUrl, namespace, queues, sizeLimit: 10_000, leaderTimes, log: silent })
  await eventually(async () => (await entries()) === 0)
  await leader.close()
  expect(await added()).toBe(3)
})
