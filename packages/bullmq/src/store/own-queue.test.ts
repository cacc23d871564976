// What a team's own Queue does to a job is the same with Bullpen's scripts and in plain BullMQ.
import { randomUUID } from 'node:crypto'
import { type FlowJob, FlowProducer, Job, type JobsOptions, Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { type Attachable, attach } from '../attach.ts'
import { repairIndex } from '../internals/status/index-repair.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { stateOf } from './queue-state.fixture.ts'

const KINDS = {
  bullmq: <T extends Attachable>(each: T): T => each,
  bullpen: <T extends Attachable>(each: T): T => attach(each),
}

/** The options of a job, the queue that it is in, if it is another one, and its own children. */
interface Child extends JobsOptions {
  readonly queue?: string
  readonly children?: Children
}

interface Children {
  readonly [id: string]: Child
}

function nodes(children: Children): FlowJob[] {
  return Object.entries(children).map(([jobId, { queue = 'q', children: own = {}, ...more }]) => ({
    ...{ name: 'x', queueName: queue, opts: { jobId, ...more }, children: nodes(own) },
  }))
}

/** A queue. Most calls are about the job `j`. */
function stage(kind: keyof typeof KINDS) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'q')
  const options = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const queue = KINDS[kind](new Queue('q', options))
  const flows = KINDS[kind](new FlowProducer(options))
  onTestFinished(async () => {
    await Promise.all([queue.close(), flows.close()])
    redis.disconnect()
  })
  /** Makes a waiting job active. It has no lock. */
  const start = async (id: string): Promise<Job> => {
    await redis.lrem(keys.wait, 1, id)
    await redis.zrem(keys.prioritized, id)
    await redis.lpush(keys.active, id)
    return (await Job.fromId(queue, id)) ?? expect.fail()
  }
  return {
    namespace,
    redis,
    keys,
    queue,
    start,
    add: (id: string, more: JobsOptions = {}) => queue.add('x', { of: id }, { jobId: id, ...more }),
    /** Adds a parent with these children, by their ids. */
    addFlow: (children: Children, parent = 'p') =>
      flows.add({ name: 'parent', queueName: 'q', opts: { jobId: parent }, children: nodes(children) }),
    /** Adds a job scheduler, whose next job is due at the beginning of the next year. */
    async addScheduler(): Promise<void> {
      const { id = '' } = await queue.upsertJobScheduler('s', { pattern: '0 0 1 1 *' }, { name: 'x' })
      // The delay depends on the current time.
      await redis.hset(keys.job(id), { delay: '1', opts: '{}' })
    },
    // The token 0 stands for no lock.
    fail: async (id: string) => (await start(id)).moveToFailed(new Error('no'), '0'),
    complete: async (id: string) => (await start(id)).moveToCompleted('done', '0', false),
  }
}

type Stage = ReturnType<typeof stage>

interface Scenario {
  readonly given: (one: Stage) => Promise<unknown>
  readonly call: (job: Job, one: Stage) => Promise<unknown>
  /** The status index and the totals need a repair, because the test itself has deleted a job. */
  readonly isBroken?: true
  /** The events have no certain order, because Redis returns the children of a job in any order. */
  readonly isUnordered?: true
}

/** What Bullpen stores beyond BullMQ, without the prefix of the queue's keys. */
const OWN =
  /:(totals|scheduled|retrying|dead|cancelled|expired|recently-removed|fingerprints|fingerprint:.*|new-fingerprints)$/

/** What the call returns or throws. */
async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return { returned: await call }
  } catch (error) {
    const { message, code } = error as Error & { readonly code?: unknown }
    return { message, code }
  }
}

/** Expects the same outcome and the same data of both kinds of queue. Returns the outcome. */
async function expectSame({ given, call, isBroken, isUnordered }: Scenario): Promise<unknown> {
  const results = []
  for (const kind of ['bullmq', 'bullpen'] as const) {
    const one = stage(kind)
    await given(one)
    await one.redis.del(one.keys.marker)
    const job = (await one.queue.getJob('j')) ?? expect.fail()
    const outcome = await outcomeOf(call(job, one))
    const state = await stateOf(one, { ignores: (key) => OWN.test(key), ignoredFields: ['fingerprint'] })
    const events = Object.entries(state).filter(([key]) => isUnordered && key.endsWith(':events'))
    for (const [key, [entries]] of events as [string, [string[], boolean]][]) state[key] = entries.toSorted()
    results.push({ outcome, state })
    if (kind === 'bullpen' && isBroken === undefined) expect(await repairIndex(one.redis, one.keys)).toBe(0)
  }
  expect(results[1]).toEqual(results[0])
  return results[0]?.outcome
}

/** `j` has ended, and another job waits. */
const ended =
  (how: 'fail' | 'complete', more: JobsOptions = {}, fields: Readonly<Record<string, string>> = {}) =>
  async (one: Stage): Promise<void> => {
    await one.add('other', { priority: more.priority ?? 0 })
    await one.add('j', more)
    await one.redis.hset(one.keys.job('j'), { ats: '3', stc: '1', ...fields })
    await one[how]('j')
  }

const childThatFailed = (more: JobsOptions) => async (one: Stage) => {
  await one.addFlow({ j: more, other: {} })
  await one.fail('j')
}

const RETRIES: Readonly<Record<string, Scenario>> = {
  'a job that has failed': { given: ended('fail'), call: (job) => job.retry() },
  'a job that is completed': { given: ended('complete'), call: (job) => job.retry('completed') },
  'a job with lifo': { given: ended('fail', { lifo: true }), call: (job) => job.retry('failed') },
  'a job with a priority': { given: ended('fail', { priority: 3 }), call: (job) => job.retry('failed') },
  'a job with a priority and lifo': {
    given: ended('fail', { priority: 3, lifo: true }),
    call: (job) => job.retry('failed'),
  },
  'a job whose attempts are forgotten': {
    given: ended('fail'),
    call: (job) => job.retry('failed', { resetAttemptsMade: true }),
  },
  'a job whose starts are forgotten': {
    given: ended('fail'),
    call: (job) => job.retry('failed', { resetAttemptsStarted: true }),
  },
  'a completed job whose attempts and starts are forgotten': {
    given: ended('complete'),
    call: (job) => job.retry('completed', { resetAttemptsMade: true, resetAttemptsStarted: true }),
  },
  'a job of a paused queue': {
    given: ended('fail'),
    async call(job, { queue }) {
      await queue.pause()
      await job.retry('failed')
    },
  },
  'a job of a queue that is full': {
    async given(one) {
      await ended('fail')(one)
      await one.start('other')
      await one.queue.setGlobalConcurrency(1)
    },
    call: (job) => job.retry('failed'),
  },
  'a job that has not ended': { given: (one) => one.add('j'), call: (job) => job.retry('failed') },
  'a failed job as a completed one': { given: ended('fail'), call: (job) => job.retry('completed') },
  'a job that is gone': {
    given: ended('fail'),
    async call(job, { redis, keys }) {
      await redis.del(keys.job('j'))
      await job.retry('failed')
    },
    isBroken: true,
  },
  'a child that has failed its parent': {
    given: childThatFailed({ failParentOnFailure: true }),
    call: (job) => job.retry('failed'),
  },
  'a child whose parent has ignored its failure': {
    given: childThatFailed({ ignoreDependencyOnFailure: true }),
    call: (job) => job.retry('failed'),
  },
  'a child whose parent waits for it': { given: childThatFailed({}), call: (job) => job.retry('failed') },
  'a child that is completed': {
    async given(one) {
      await one.addFlow({ j: {}, other: {} })
      await one.complete('j')
    },
    call: (job) => job.retry('completed'),
  },
  'a child whose parent is gone': {
    async given(one) {
      await childThatFailed({ ignoreDependencyOnFailure: true })(one)
      await one.redis.del(one.keys.job('p'))
    },
    call: (job) => job.retry('failed'),
    isBroken: true,
  },
}

describe('a retry of', () => {
  it.each(Object.entries(RETRIES))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a job is refused with BullMQ’s codes', async () => {
    const outcomes = ['a job that has not ended', 'a failed job as a completed one', 'a job that is gone'].map((name) =>
      expectSame(RETRIES[name] ?? expect.fail()),
    )
    expect(await Promise.all(outcomes)).toMatchObject([{ code: -3 }, { code: -3 }, { code: -1 }])
  })

  it('a task whose compensations were released is refused, and changes nothing', async () => {
    const one = stage('bullpen')
    await ended('fail', {}, { compensated: '1' })(one)
    const state = () => stateOf(one, { ignores: () => false })
    const before = await state()
    await expect((await one.queue.getJob('j'))?.retry('failed')).rejects.toMatchObject({ code: -3 })
    expect(await state()).toEqual(before)
  })

  it('a quarantined task leaves it one death and one loss', async () => {
    const one = stage('bullpen')
    await ended('fail', {}, { deaths: '3', stc: '4' })(one)
    await (await one.queue.getJob('j'))?.retry('failed')
    expect(await one.redis.hmget(one.keys.job('j'), 'deaths', 'stc')).toEqual(['1', '1'])
  })

  it('a task in a lane returns it there, before the others if it is to', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    for (const [id, lifo] of [
      ['j', true],
      ['k', false],
    ] as const) {
      await one.add(id, { lifo })
      await one.fail(id)
      await redis.hset(keys.job(id), 'lane', '1 tenant')
    }
    await (await queue.getJob('k'))?.retry('failed')
    await (await queue.getJob('j'))?.retry('failed')
    expect(await redis.lrange(keys.lane('tenant'), 0, -1)).toEqual(['k', 'j'])
    expect(await redis.exists(keys.wait)).toBe(0)
    expect(await redis.zscore(keys.marker, '0')).toBe('0')
  })

  it('a task is noted for the cancel rules, and forgets a request to cancel its earlier attempt', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await ended('fail')(one)
    await redis.hset(keys.cancelRules, 'r', '{}')
    await redis.hset(keys.cancelling, 'j', '')
    await (await queue.getJob('j'))?.retry('failed')
    expect(await redis.smembers(keys.cancelReturned)).toEqual(['j'])
    expect(await redis.exists(keys.cancelling)).toBe(0)
  })
})
