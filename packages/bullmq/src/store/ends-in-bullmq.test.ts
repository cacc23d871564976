// If a task ends that no worker runs, BullMQ's flows, deduplication and metrics change as they do when a job fails in BullMQ itself.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { FlowProducer, Job, type JobsOptions, MetricsTime, Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { cancelById } from '../cancel/by-id.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { bullpenBackend } from './bullpen-backend.ts'
import { stateOf } from './queue-state.fixture.ts'

const REASON = 'TERMINATED_STOP_SIGNAL (cancelled): the task was cancelled'

function stage() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'q')
  const options = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const queue = new Queue('q', options, bullpenBackend())
  const plain = new Queue('q', options)
  const flows = new FlowProducer(options, bullpenBackend())
  onTestFinished(async () => {
    await Promise.all([queue.close(), plain.close(), flows.close()])
    redis.disconnect()
  })
  return { namespace, redis, keys, queue, plain, flows }
}

type Stage = ReturnType<typeof stage>

/** Two ways to end the waiting job `id`: as BullMQ does when a job fails, and as Bullpen does when a task is cancelled. */
const ENDS: Readonly<Record<'bullmq' | 'bullpen', (stage: Stage, id: string) => Promise<unknown>>> = {
  async bullmq({ redis, keys, plain }, id) {
    await redis.lrem(keys.wait, 1, id)
    await redis.lpush(keys.active, id)
    const job = (await Job.fromId(plain, id)) ?? expect.fail()
    // The token 0 stands for no lock.
    await job.moveToFailed(new Error(REASON), '0')
  },
  bullpen: (one, id) => cancel(one, id, Date.now()),
}

function cancel({ redis, keys }: Stage, id: string, now: number): Promise<unknown> {
  const by = { by: '', process: 'test' }
  return cancelById(redis, keys, { request: id, id: id as TaskId, stoppable: true, now, ...by })
}

/** Everything that Redis holds, except for what only Bullpen stores, and for what says that the job `ended` has failed. */
function left(one: Stage, ended: string): Promise<Record<string, unknown>> {
  const { keys } = one
  const own = [keys.job(ended), keys.failed, keys.dead, keys.cancelled, keys.cancelReply(ended), keys.totals]
  own.push(keys.scheduled, keys.retrying)
  // A job that has failed is in the index of dead tasks.
  return stateOf(one, { ignores: (key) => own.includes(key) || key.includes('fingerprint'), event: knownEvent })
}

/** An event without that in which our end differs on purpose: the place of the job, and that no attempt is left. */
function knownEvent(event: string, fields: readonly string[]): string | undefined {
  if (event === 'retries-exhausted') return undefined
  return event === 'failed' ? 'failed' : [event, ...fields].join(' ')
}

/** Expects that both ends leave the same in Redis, and returns what they leave. */
async function expectSame(prepare: (stage: Stage) => Promise<unknown>, ended = 'c'): Promise<Record<string, unknown>> {
  const results = []
  for (const end of [ENDS.bullmq, ENDS.bullpen]) {
    const one = stage()
    await prepare(one)
    await one.redis.del(one.keys.marker)
    await end(one, ended)
    results.push(await left(one, ended))
  }
  expect(results[1]).toEqual(results[0])
  return results[1] ?? {}
}

const CHILDREN: Readonly<Record<string, JobsOptions>> = {
  'no option': {},
  failParentOnFailure: { failParentOnFailure: true },
  continueParentOnFailure: { continueParentOnFailure: true },
  ignoreDependencyOnFailure: { ignoreDependencyOnFailure: true },
  removeDependencyOnFailure: { removeDependencyOnFailure: true },
}

interface Parent {
  readonly options?: JobsOptions
  readonly hasOtherChild?: true
  readonly change?: (stage: Stage) => Promise<unknown>
}

const PARENTS: Readonly<Record<string, Parent>> = {
  'a parent': {},
  'a parent with another child': { hasOtherChild: true },
  'a parent with a priority': { options: { priority: 5 } },
  'a parent with a delay': { options: { delay: 60_000 } },
  'a parent with a delay and an attempt behind it': {
    options: { delay: 60_000 },
    change: ({ redis, keys }) => redis.hset(keys.job('p'), 'atm', 1),
  },
  'a parent in a paused queue': { change: ({ redis, keys }) => redis.hset(keys.meta, 'paused', 1) },
  'a parent in a queue that is full': {
    change: async ({ redis, keys }) => {
      await redis.hset(keys.meta, 'concurrency', 1)
      await redis.lpush(keys.active, 'other')
    },
  },
  'a parent that is delayed': {
    change: async ({ redis, keys }) => {
      await redis.zrem(keys.waitingChildren, 'p')
      for (const set of [keys.delayed, keys.retrying]) await redis.zadd(set, 8e15, 'p')
      await redis.hset(keys.job('p'), 'delay', 1_000)
    },
  },
  'a parent that waits already': {
    change: async ({ redis, keys }) => {
      await redis.zrem(keys.waitingChildren, 'p')
      await redis.rpush(keys.wait, 'p')
    },
  },
  'a parent that is gone': { change: ({ redis, keys }) => redis.del(keys.job('p')) },
}

describe.each(Object.entries(CHILDREN))('a child with %s', (_option, opts) => {
  it.each(Object.entries(PARENTS))('ends, and %s goes on as in BullMQ', async (_parent, given) => {
    const { options, hasOtherChild, change = async () => {} } = given
    await expectSame(async (one) => {
      const child = (jobId: string) => ({ name: 'x', queueName: 'q', opts: { jobId, ...opts } })
      await one.flows.add({
        ...{ name: 'parent', queueName: 'q', opts: { jobId: 'p', ...options } },
        children: [child('c'), ...(hasOtherChild ? [child('d')] : [])],
      })
      await change(one)
    })
  })
})

it('a parent that is delayed lets no worker wait longer than until the next lane may start a task', async () => {
  const one = stage()
  const { redis, keys, flows } = one
  await flows.add({
    ...{ name: 'parent', queueName: 'q', opts: { jobId: 'p', delay: 60_000 } },
    children: [{ name: 'x', queueName: 'q', opts: { jobId: 'c', ignoreDependencyOnFailure: true } }],
  })
  const soon = Date.now() + 1_000
  await redis.zadd(keys.laneTimes, soon, 'tenant')
  await cancel(one, 'c', Date.now())
  expect(await redis.zscore(keys.marker, '1')).toBe(`${soon}`)
})

const NEXT: Readonly<Record<string, JobsOptions>> = {
  'no options': {},
  'a delay': { delay: 5_000 },
  'a priority': { priority: 4 },
  'an id': { jobId: 'mine' },
  lifo: { lifo: true },
}

describe('a job with a deduplication id', () => {
  it.each([
    ['is forgotten', {}],
    ['is kept for its lifetime', { ttl: 50_000 }],
  ])('whose id %s ends as in BullMQ', async (_how, more) => {
    await expectSame(({ queue }) => queue.add('x', {}, { jobId: 'c', deduplication: { id: 'one', ...more } }))
  })

  it.each(Object.entries(NEXT))('ends, and the next one, with %s, is added as in BullMQ', async (_name, options) => {
    const found = await expectSame(async ({ redis, keys, queue }) => {
      const deduplication = { id: 'one', keepLastIfActive: true }
      await queue.add('x', { n: 1 }, { jobId: 'c', deduplication })
      await queue.add('another', {}, { jobId: 'b' })
      await redis.zadd(keys.delayed, 9e15, 'later')
      await redis.lmove(keys.wait, keys.active, 'RIGHT', 'LEFT')
      await queue.add('x', { n: 2 }, { deduplication, ...options })
      await redis.lmove(keys.active, keys.wait, 'LEFT', 'RIGHT')
    })
    expect(found).toHaveProperty(['{ns.q}:q:de:one'])
    expect(found).not.toHaveProperty(['{ns.q}:q:dn:one'])
  })
})

describe('BullMQ’s metrics', () => {
  it('list each minute since the last one that was listed', async () => {
    const one = stage()
    const { redis, keys, queue } = one
    await redis.hset(keys.metricsFailed, { count: 5, prevTS: 600_000, prevCount: 3 })
    await redis.rpush(keys.metricsFailedData, 9, 8)
    for (const jobId of ['a', 'b']) {
      await queue.add('x', {}, { jobId })
      await cancel(one, jobId, 900_000)
    }
    expect(await redis.lrange(keys.metricsFailedData, 0, -1)).toEqual(['0', '0', '0', '0', '2', '9', '8'])
    expect(await redis.hgetall(keys.metricsFailed)).toEqual({ count: '7', prevTS: '900000', prevCount: '5' })
  })

  it('list no more minutes than BullMQ does', async () => {
    const one = stage()
    const { redis, keys, queue } = one
    await redis.hset(keys.metricsFailed, { count: 2, prevTS: 0, prevCount: 0 })
    await queue.add('x', {}, { jobId: 'a' })
    await cancel(one, 'a', (MetricsTime.ONE_MONTH + 5) * 60_000)
    const minutes = await redis.lrange(keys.metricsFailedData, 0, -1)
    expect(minutes).toHaveLength(MetricsTime.ONE_MONTH)
    expect(minutes.at(-1)).toBe('2')
  })
})
