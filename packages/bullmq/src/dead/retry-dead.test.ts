// A retry of a dead task changes what BullMQ's own retry changes, and two retries of the same task differ in their times.
import { TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { FlowProducer, Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { runScript } from '../scripts/script.ts'
import { long, setup } from '../setup.fixture.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { retryTaskScript } from '../store/scripts.ts'

/** A queue whose tasks die, and a plain Queue of BullMQ's for it. */
async function stage() {
  const rig = await setup({
    leads: false,
    handle: () => {
      throw new TaskError('gone', 'not there', { retryable: false })
    },
  })
  const redis = new Redis(rig.redisUrl, { maxRetriesPerRequest: null })
  const options = { connection: redis, prefix: prefixOf(rig.namespace, 'rig') }
  const plain = new Queue('rig', { ...options, skipMetasUpdate: true })
  onTestFinished(async () => {
    await plain.close()
    redis.disconnect()
  })
  const keys = queueKeys(rig.namespace, 'rig')
  const { base, dead } = keys
  return {
    ...rig,
    redis,
    keys,
    plain,
    options,
    /** Lets the tasks die, and stops the pool. */
    async die(count: number): Promise<void> {
      await rig.startPool()
      await eventually(async () => (await redis.zcard(dead)) === count)
      await rig.drain()
    },
    retry: (id: string) =>
      runScript(
        redis,
        retryTaskScript,
        { job: keys.job(id), dead },
        { base, id, request: `retry of ${id}`, by: 'ann', data: '', copy: '', afterCompensation: '' },
      ),
    retryPlainly: async (id: string) => (await plain.getJob(id))?.retry('failed', { resetAttemptsMade: true }),
    async fields(id: string): Promise<readonly string[]> {
      return Object.keys(await redis.hgetall(keys.job(id))).toSorted()
    },
    async lastEvent(id: string): Promise<readonly string[] | undefined> {
      const entries = await redis.xrange(keys.events, '-', '+')
      return entries.findLast(([, event]) => event.includes(id))?.[1].filter((each) => each !== id)
    },
  }
}

it.each([
  ['wait', {}],
  ['prioritized', { priority: 7 }],
] as const)(
  'a retry puts a task where BullMQ’s own retry puts it in %s, with the same fields and event',
  async (place, given) => {
    const { enqueue, die, retry, retryPlainly, fields, lastEvent, redis, keys } = await stage()
    const [own, theirs] = [await enqueue(long, given), await enqueue(long, given)]
    await die(2)
    await redis.del(keys.marker)
    expect(await retry(own)).toBe('done')
    expect(await redis.zscore(keys.marker, '0')).toBe('0')
    await retryPlainly(theirs)
    if (place === 'wait') expect(await redis.lrange(keys.wait, 0, -1)).toEqual([theirs, own])
    else {
      const step = 0x1_00_00_00_00
      const [first, score, second, next] = await redis.zrange(keys.prioritized, 0, '-1', 'WITHSCORES')
      expect([first, second]).toEqual([own, theirs])
      expect(Math.floor(Number(score) / step)).toBe(7)
      expect(Number(next)).toBe(Number(score) + 1)
    }
    // A plain Queue leaves the fingerprint and the empty lock, and stores no list of retries.
    expect((await fields(own)).filter((name) => name !== 'retries')).toEqual(
      (await fields(theirs)).filter((name) => name !== 'fingerprint' && name !== 'lock'),
    )
    expect(await redis.hmget(keys.job(own), 'ats', 'priority')).toEqual(
      await redis.hmget(keys.job(theirs), 'ats', 'priority'),
    )
    expect(await lastEvent(own)).toEqual(['event', 'waiting', 'jobId', 'prev', 'failed'])
    expect(await lastEvent(theirs)).toEqual(await lastEvent(own))
  },
)

it('a retried task with a concurrency key waits behind the others of its key', async () => {
  const { broker, enqueue, die, retry, redis, keys } = await stage()
  const given = { turn: { key: 'tenant', weight: 1 } }
  const id = await enqueue(long, given)
  await die(1)
  const other = await enqueue(long, given)
  expect(await retry(id)).toBe('done')
  expect(await redis.lrange(keys.lane('tenant'), 0, -1)).toEqual([id, other])
  expect(await redis.exists(keys.wait)).toBe(0)
  expect(await broker.counts('rig')).toMatchObject({ waiting: 2, dead: 0 })
})

it('a retry in a paused queue wakes no worker', async () => {
  const { broker, enqueue, die, retry, redis, keys } = await stage()
  const id = await enqueue(long)
  await die(1)
  await redis.hset(keys.meta, 'paused', 1)
  await redis.del(keys.marker)
  expect(await retry(id)).toBe('done')
  expect(await redis.exists(keys.marker)).toBe(0)
  expect(await broker.totals('rig')).toMatchObject({ accepted: 1, removed: 0, drift: 0, unaccounted: 0 })
})

it('the parent of a flow waits for a retried child again, as after BullMQ’s own retry', async () => {
  const { die, retry, retryPlainly, redis, keys, options } = await stage()
  const flows = new FlowProducer(options, bullpenBackend())
  onTestFinished(() => flows.close())
  const node = (opts: object) => ({ name: 'rig.long', queueName: 'rig', opts })
  const failing = node({ ignoreDependencyOnFailure: true })
  const flow = { ...node({}), children: [failing, failing, node({ delay: 3_600_000 })] }
  const { job: parent, children = [] } = await flows.add(flow)
  const [own = '', theirs = '', later = ''] = children.map(({ job }) => job.id)
  await die(2)
  const parentKey = keys.job(parent.id ?? '')
  const dependencies = async () => (await redis.smembers(`${parentKey}:dependencies`)).toSorted()
  expect(await dependencies()).toEqual([keys.job(later)])
  expect(await retry(own)).toBe('done')
  await retryPlainly(theirs)
  expect(await dependencies()).toEqual([own, theirs, later].map(keys.job).toSorted())
  expect(await redis.exists(`${parentKey}:failed`)).toBe(0)
})

it('a task that another tool has retried is not retried again, even before the leader has repaired the index', async () => {
  const { enqueue, die, retry, retryPlainly, redis, keys } = await stage()
  const id = await enqueue(long)
  await die(1)
  await retryPlainly(id)
  expect(await redis.zrange(keys.dead, 0, '-1')).toEqual([id])
  expect(await retry(id)).toBe('not_dead')
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual([id])
})

it('a retry is stored as later than the previous one, even if the clock was set back in between', async () => {
  const { broker, enqueue, die, redis, keys } = await stage()
  const id = await enqueue(long)
  await die(1)
  const job = keys.job(id)
  const { v, ...envelope } = JSON.parse((await redis.hget(job, 'data')) ?? '')
  const later = Date.now() + 3_600_000
  await redis.hset(job, 'data', JSON.stringify({ v, retriedAt: later, ...envelope }))
  expect(await broker.retry(id, { request: 'request-1', by: 'ann', edit: { input: { n: 5 }, version: 1 } })).toBe(
    'done',
  )
  expect(JSON.parse((await redis.hget(job, 'data')) ?? '')).toMatchObject({ v, retriedAt: later + 1, input: { n: 5 } })
})
