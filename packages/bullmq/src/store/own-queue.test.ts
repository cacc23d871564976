// What a team's own Queue does to a job is the same with Bullpen's scripts and in plain BullMQ.
import { randomUUID } from 'node:crypto'
import {
  createRedisBackend,
  type FlowJob,
  FlowProducer,
  Job,
  type JobsOptions,
  Queue,
  WaitingChildrenError,
} from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { openWorld } from '../internals/index-model/world.fixture.ts'
import { repairIndex } from '../internals/status/index-repair.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { lockOwner, lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'
import { stateOf } from './queue-state.fixture.ts'

const KINDS = { bullmq: createRedisBackend, bullpen: bullpenBackend() }

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
  const queue = new Queue('q', options, KINDS[kind])
  const flows = new FlowProducer(options, KINDS[kind])
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
    kind,
    namespace,
    redis,
    keys,
    queue,
    start,
    add: (id: string, more: JobsOptions = {}) => queue.add('x', { of: id }, { jobId: id, ...more }),
    /** Adds a parent with these children, by their ids. */
    addFlow: (children: Children, parent = 'p') =>
      flows.add({ name: 'parent', queueName: 'q', opts: { jobId: parent }, children: nodes(children) }),
    /** Adds a job that is a child of `j`. */
    addChild: (id: string) => queue.add('x', {}, { jobId: id, parent: { id: 'j', queue: queue.qualifiedName } }),
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

/** What the call returns or throws. The names of keys differ. */
async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return { returned: await call }
  } catch (error) {
    const { message, code } = error as Error & { readonly code?: unknown }
    return { message: message.replace(/\{\S+\}/, '{ns}'), code }
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

const removed = (job: Job): Promise<void> => job.remove()
const parentRemoved = (_: Job, { queue }: Stage): Promise<number> => queue.remove('p')
const lock = ({ kind, redis, keys }: Stage, id: string, token = 'token'): Promise<unknown> =>
  kind === 'bullpen' ? lockTask(redis, keys, id, token) : redis.set(keys.lock(id), token, 'PX', 60_000)

const FAMILY: Children = {
  j: {},
  waits: {},
  later: { delay: 60_000, children: { below: {}, deeper: { children: { deepest: { priority: 2 } } } } },
  elsewhere: { queue: 'r' },
  done: {},
  ignored: { ignoreDependencyOnFailure: true },
  fatal: { failParentOnFailure: true },
}

/** The parent `p`, whose children have come to different ends. */
async function family(one: Stage): Promise<void> {
  await one.addFlow(FAMILY)
  await one.complete('done')
  await one.fail('ignored')
}

const REMOVALS: Readonly<Record<string, Scenario>> = {
  'a waiting job': { given: (one) => one.add('j'), call: removed },
  'a job with a priority': { given: (one) => one.add('j', { priority: 3 }), call: removed },
  'a delayed job': { given: (one) => one.add('j', { delay: 60_000 }), call: removed },
  'a completed job': { given: ended('complete'), call: removed },
  'a failed job': { given: ended('fail'), call: removed },
  'a job with a log': {
    async given(one) {
      await one.add('j')
      await one.queue.addJobLog('j', 'a line')
    },
    call: removed,
  },
  'an active job without a lock': {
    async given(one) {
      await one.add('j')
      await one.start('j')
    },
    call: removed,
  },
  'a job that a worker has': {
    async given(one) {
      await one.add('j')
      await one.start('j')
      await lock(one, 'j')
    },
    call: removed,
  },
  'a job that a worker has, by its id': {
    async given(one) {
      await one.add('j')
      await lock(one, 'j')
    },
    call: (_, { queue }) => queue.remove('j'),
  },
  'a job that does not exist': { given: (one) => one.add('j'), call: (_, { queue }) => queue.remove('none') },
  'a job in no place': {
    async given(one) {
      await one.add('j')
      await one.redis.del(one.keys.wait)
    },
    call: removed,
    isBroken: true,
  },
  'the next job of a job scheduler': {
    async given(one) {
      await one.add('j')
      await one.addScheduler()
    },
    call: async (_, { queue }) => queue.remove((await queue.getDelayed())[0]?.id ?? ''),
  },
  'a job with a deduplication id': {
    async given({ queue, start }) {
      const deduplication = { id: 'one', keepLastIfActive: true }
      await queue.add('x', {}, { jobId: 'j', deduplication })
      await start('j')
      await queue.add('x', { n: 2 }, { deduplication })
    },
    call: removed,
  },
  'a job whose deduplication id another one has': {
    async given(one) {
      await one.add('j', { deduplication: { id: 'one' } })
      await one.redis.set(one.keys.deduplication('one'), 'other')
    },
    call: removed,
  },
  'the last child for which a parent waits': { given: (one) => one.addFlow({ j: {} }), call: removed },
  'the last child of a parent in a paused queue': {
    given: (one) => one.addFlow({ j: {} }),
    async call(job, { queue }) {
      await queue.pause()
      await job.remove()
    },
  },
  'a child for whose sibling the parent waits': { given: (one) => one.addFlow({ j: {}, other: {} }), call: removed },
  'a child whose parent is gone': {
    async given(one) {
      await one.addFlow({ j: {} })
      await one.redis.del(one.keys.job('p'), one.keys.dependencies('p'))
    },
    call: removed,
    isBroken: true,
  },
  'a failed child for which the parent waits': { given: childThatFailed({}), call: removed },
  'a parent with all of its children': { given: family, call: parentRemoved, isUnordered: true },
  'a parent that a child has failed, with all of its children': {
    async given(one) {
      await family(one)
      await one.fail('fatal')
    },
    call: parentRemoved,
    isUnordered: true,
  },
  'a parent without its children': {
    given: family,
    call: (_, { queue }) => queue.remove('p', { removeChildren: false }),
  },
  'a parent of a child that a worker has': {
    async given(one) {
      await family(one)
      await lock(one, 'deepest')
    },
    call: parentRemoved,
  },
  'the children of a parent that have not been processed': {
    async given(one) {
      await family(one)
      await one.start('waits')
      await lock(one, 'waits')
    },
    call: async (_, { queue }) => (await queue.getJob('p'))?.removeUnprocessedChildren(),
    isUnordered: true,
  },
  'the last children of a parent that have not been processed': {
    async given(one) {
      await one.addFlow({ j: {}, done: {} })
      await one.complete('done')
    },
    call: async (_, { queue }) => (await queue.getJob('p'))?.removeUnprocessedChildren(),
  },
  'the children of a parent that has none': {
    given: (one) => one.add('j'),
    call: (job) => job.removeUnprocessedChildren(),
  },
}

describe('a removal of', () => {
  it.each(Object.entries(REMOVALS))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a job is refused with BullMQ’s codes', async () => {
    const outcome = (name: string) => expectSame(REMOVALS[name] ?? expect.fail())
    expect(await outcome('a job that a worker has')).toMatchObject({ message: expect.stringContaining('locked') })
    expect(await outcome('a job that a worker has, by its id')).toEqual({ returned: 0 })
    expect(await outcome('a parent of a child that a worker has')).toEqual({ returned: 0 })
    expect(await outcome('the next job of a job scheduler')).toMatchObject({ code: -8 })
  })

  it('a task in a lane takes it out of there, also if it has a priority', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    for (const [id, options] of [
      ['j', {}],
      ['k', { priority: 3 }],
    ] as const) {
      await one.add(id, options)
      await one.fail(id)
      await redis.hset(keys.job(id), 'lane', '1 tenant')
      await (await queue.getJob(id))?.retry('failed')
      expect(await redis.exists(keys.lanes)).toBe(1)
      await queue.remove(id)
      expect(await redis.exists(keys.lanes, keys.lane('tenant'), keys.lanePriorities('tenant'), keys.job(id))).toBe(0)
    }
  })

  it('a job adds its event to a stream that keeps no events, because readers get events once the script has ended', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j')
    await redis.hset(keys.meta, 'opts.maxLenEvents', 0)
    await queue.remove('j')
    expect((await redis.xrange(keys.events, '-', '+')).map(([, [, name]]) => name)).toEqual(['removed'])
  })

  it('an active task gives its place of a concurrency key back', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j')
    await one.start('j')
    await redis.hset(keys.job('j'), 'lane', '1 tenant')
    await redis.hset(keys.keyLimits, 'concurrency', 2)
    await redis.zadd(keys.activeByKey, 1, 'tenant')
    await queue.remove('j')
    expect(await redis.exists(keys.active, keys.activeByKey)).toBe(0)
  })

  it('a task that has not ended releases its compensations, and a failed one leaves the index of its error', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j')
    await redis.hset(keys.job('j'), { atEnd: '+', compensations: 'step {"task":"undo"}\n' })
    await redis.hincrby(keys.totals, 'bytes', 'step {"task":"undo"}\n'.length)
    await queue.remove('j')
    expect((await redis.xrange(keys.outbox, '-', '+')).map(([, fields]) => fields[1])).toEqual([
      expect.stringMatching(/^t j \d+ 1 c \{"task":"undo"\}$/),
    ])
    await one.add('k')
    await one.fail('k')
    expect(await redis.hlen(keys.fingerprints)).toBe(1)
    await queue.remove('k')
    expect(await redis.exists(keys.fingerprints, keys.failed, keys.dead)).toBe(0)
    expect(await redis.hmget(keys.totals, 'accepted', 'removed', 'bytes')).toEqual(['2', '2', '0'])
  })
})

const delayed =
  (more: JobsOptions = {}) =>
  async (one: Stage): Promise<void> => {
    await one.add('other', { priority: more.priority ?? 0 })
    await one.add('later', { delay: 30_000 })
    await one.add('j', { delay: 60_000, ...more })
  }

const promoted = (job: Job): Promise<void> => job.promote()

const PROMOTIONS: Readonly<Record<string, Scenario>> = {
  'a delayed job': { given: delayed(), call: promoted },
  'a delayed job with a priority': { given: delayed({ priority: 3 }), call: promoted },
  'a delayed job with lifo': { given: delayed({ lifo: true }), call: promoted },
  'a delayed job of a paused queue': {
    given: delayed(),
    async call(job, { queue }) {
      await queue.pause()
      await job.promote()
    },
  },
  'a delayed job of a queue that is full': {
    async given(one) {
      await delayed()(one)
      await one.start('other')
      await one.queue.setGlobalConcurrency(1)
    },
    call: promoted,
  },
  'a waiting job': { given: (one) => one.add('j'), call: promoted },
  'a job that is gone': {
    given: delayed(),
    async call(job) {
      await job.remove()
      await job.promote()
    },
  },
}

describe('a promotion of', () => {
  it.each(Object.entries(PROMOTIONS))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a job is refused with BullMQ’s code', async () => {
    expect(await expectSame(PROMOTIONS['a waiting job'] ?? expect.fail())).toMatchObject({ code: -3 })
  })

  it('a job that is lost is refused, and creates no hash for it', async () => {
    const { redis, keys, queue } = stage('bullpen')
    await redis.zadd(keys.delayed, 4_096, 'lost')
    await expect(new Job(queue, 'x', {}, {}, 'lost').promote()).rejects.toMatchObject({ code: -3 })
    expect(await redis.exists(keys.job('lost'), keys.wait)).toBe(0)
  })

  it('a task leaves the set of its status', async () => {
    const one = stage('bullpen')
    await one.add('j', { delay: 60_000 })
    await (await one.queue.getJob('j'))?.promote()
    expect(await one.redis.exists(one.keys.delayed, one.keys.scheduled)).toBe(0)
  })

  it('a task in a lane puts it there, behind the others', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    for (const id of ['j', 'k']) {
      await one.add(id, { delay: 60_000 })
      await redis.hset(keys.job(id), 'lane', '1 tenant')
      await (await queue.getJob(id))?.promote()
    }
    expect(await redis.lrange(keys.lane('tenant'), 0, -1)).toEqual(['k', 'j'])
    expect(await redis.exists(keys.wait)).toBe(0)
  })

  it.each([
    ['without a priority', 0],
    ['with a priority', 3],
  ])('a task %s that had no place in quarantine puts it before the others', async (_, priority) => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('other', { priority })
    await one.add('j', { delay: 60_000, priority })
    await redis.hset(keys.job('j'), 'waits', 1)
    await (await queue.getJob('j'))?.promote()
    const order =
      priority === 0 ? await redis.lrange(keys.wait, 0, -1) : await redis.zrevrange(keys.prioritized, 0, '-1')
    expect(order).toEqual(['other', 'j'])
    expect(await redis.hexists(keys.job('j'), 'waits')).toBe(0)
  })
})

const DELAYS: Readonly<Record<string, Scenario>> = {
  'a delayed job to a later time': { given: delayed(), call: (job) => job.changeDelay(90_000) },
  'a delayed job to an earlier time': { given: delayed(), call: (job) => job.changeDelay(1_000) },
  'a delayed job to the current time': { given: delayed(), call: (job) => job.changeDelay(0) },
  'a delayed job with a priority': { given: delayed({ priority: 3 }), call: (job) => job.changeDelay(90_000) },
  'a waiting job': { given: (one) => one.add('j'), call: (job) => job.changeDelay(5_000) },
  'a job that is gone': {
    given: delayed(),
    async call(job) {
      await job.remove()
      await job.changeDelay(5_000)
    },
  },
}

describe('a change of the delay of', () => {
  it.each(Object.entries(DELAYS))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a job is refused with BullMQ’s codes', async () => {
    const outcome = (name: string) => expectSame(DELAYS[name] ?? expect.fail())
    expect(await outcome('a waiting job')).toMatchObject({ code: -3 })
    expect(await outcome('a job that is gone')).toMatchObject({ code: -1 })
  })

  it.each(['scheduled', 'retrying'] as const)('a %s task keeps its status', async (status) => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j', { delay: 60_000 })
    const before = Number(await redis.zscore(keys.delayed, 'j'))
    await redis.rename(keys.scheduled, keys[status])
    await (await queue.getJob('j'))?.changeDelay(5_000)
    const after = await redis.zscore(keys.delayed, 'j')
    expect(Number(after)).toBeLessThan(before)
    expect(await redis.zscore(keys[status], 'j')).toBe(after)
    expect(await redis.exists(keys.scheduled, keys.retrying)).toBe(1)
  })

  it('a task whose attempts a Worker with BullMQ’s own backend has counted is retrying', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j', { delay: 60_000 })
    await redis.hset(keys.job('j'), 'atm', 1)
    await redis.del(keys.scheduled)
    await (await queue.getJob('j'))?.changeDelay(5_000)
    expect(await redis.zrange(keys.retrying, 0, '-1')).toEqual(['j'])
  })

  it('a task is noted for the cancel rules, because it may have moved past their scan', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j', { delay: 60_000 })
    await redis.hset(keys.cancelRules, 'r', '{}')
    await (await queue.getJob('j'))?.changeDelay(5_000)
    expect(await redis.smembers(keys.cancelReturned)).toEqual(['j'])
  })

  it('a task does not let a worker wait longer than until the next lane may start a task', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j', { delay: 60_000 })
    const soon = Date.now() + 1_000
    await redis.zadd(keys.laneTimes, soon, 'tenant')
    await (await queue.getJob('j'))?.changeDelay(50_000)
    expect(await redis.zscore(keys.marker, '1')).toBe(`${soon}`)
  })
})

/** `j` waits between two others. */
const between =
  (more: JobsOptions = {}) =>
  async (one: Stage): Promise<void> => {
    for (const id of ['before', 'j', 'after']) await one.add(id, more)
    await one.add('urgent', { priority: 2 })
  }

const PRIORITIES: Readonly<Record<string, Scenario>> = {
  'a waiting job': { given: between(), call: (job) => job.changePriority({ priority: 2 }) },
  'a waiting job that keeps none': { given: between(), call: (job) => job.changePriority({}) },
  'a waiting job that is to be first': { given: between(), call: (job) => job.changePriority({ lifo: true }) },
  'a waiting job that is to be the first of its priority': {
    given: between(),
    async call(job, { redis, keys }) {
      await job.changePriority({ priority: 2, lifo: true })
      // Here, BullMQ wakes no worker.
      await redis.del(keys.marker)
    },
  },
  'a job with a priority': { given: between({ priority: 5 }), call: (job) => job.changePriority({ priority: 2 }) },
  'a job that loses its priority': {
    given: between({ priority: 5 }),
    call: (job) => job.changePriority({ priority: 0 }),
  },
  'a job that loses its priority and is to be first': {
    given: async (one) => {
      await one.add('other')
      await between({ priority: 5 })(one)
    },
    call: (job) => job.changePriority({ priority: 0, lifo: true }),
  },
  'a job of a paused queue': {
    given: between(),
    async call(job, { queue }) {
      await queue.pause()
      await job.changePriority({ priority: 2 })
    },
  },
  'a delayed job': { given: delayed(), call: (job) => job.changePriority({ priority: 2 }) },
  'a job that has ended': { given: ended('complete'), call: (job) => job.changePriority({ priority: 2 }) },
  'a job that is gone': {
    given: between(),
    async call(job) {
      await job.remove()
      await job.changePriority({ priority: 2 })
    },
  },
}

describe('a change of the priority of', () => {
  it.each(Object.entries(PRIORITIES))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a job is refused with BullMQ’s code', async () => {
    expect(await expectSame(PRIORITIES['a job that is gone'] ?? expect.fail())).toMatchObject({ code: -1 })
  })

  it('a waiting task is noted for the cancel rules, because it may have moved past their scan', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j')
    await redis.hset(keys.cancelRules, 'r', '{}')
    await (await queue.getJob('j'))?.changePriority({ priority: 2 })
    expect(await redis.smembers(keys.cancelReturned)).toEqual(['j'])
  })
})

const changed = (job: Job): Promise<void> => job.updateData({ text: 'longer than it was, with an é' })

const DATA: Readonly<Record<string, Scenario>> = {
  'a waiting job': { given: (one) => one.add('j'), call: changed },
  'a waiting job to nothing': { given: (one) => one.add('j'), call: (job) => job.updateData(null) },
  'a delayed job': { given: delayed(), call: changed },
  'an active job': {
    async given(one) {
      await one.add('j')
      await one.start('j')
    },
    call: changed,
  },
  'a job that has ended': { given: ended('fail'), call: changed },
  'a job that is gone': {
    given: (one) => one.add('j'),
    async call(job) {
      await job.remove()
      await changed(job)
    },
  },
}

describe('a change of the data of', () => {
  it.each(Object.entries(DATA))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a job is refused with BullMQ’s code', async () => {
    expect(await expectSame(DATA['a job that is gone'] ?? expect.fail())).toMatchObject({ code: -1 })
  })
})

const NOTES: Readonly<Record<string, Scenario>> = {
  'a line of its log': { given: (one) => one.add('j'), call: (job) => job.log('a line') },
  'the newest lines of its log': {
    async given(one) {
      await one.add('j')
      for (const line of ['a', 'b', 'c']) await one.queue.addJobLog('j', line)
    },
    call: (_, { queue }) => queue.addJobLog('j', 'd', 2),
  },
  'its progress': { given: (one) => one.add('j'), call: (job) => job.updateProgress({ fraction: 0.5 }) },
  'that its deduplication id is free': {
    given: (one) => one.add('j', { deduplication: { id: 'one' } }),
    call: (job) => job.removeDeduplicationKey(),
  },
  'that its deduplication id is free, after another one has taken it': {
    async given(one) {
      await one.add('j', { deduplication: { id: 'one' } })
      await one.redis.set(one.keys.deduplication('one'), 'other')
    },
    call: (job) => job.removeDeduplicationKey(),
  },
  'a line of its log and its progress, although it is gone': {
    given: (one) => one.add('j'),
    async call(job) {
      await job.remove()
      return [await outcomeOf(job.log('a line')), await outcomeOf(job.updateProgress(1))]
    },
  },
}

describe('a job stores', () => {
  it.each(Object.entries(NOTES))('%s, as in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })
})

/** `j` is active and has the children `a` and `b`. */
async function activeParent(one: Stage): Promise<void> {
  await one.add('j')
  await one.start('j')
  for (const id of ['a', 'b']) await one.addChild(id)
  await lock(one, 'j')
  await one.redis.sadd(one.kind === 'bullpen' ? one.keys.unrenewed : one.keys.stalled, 'j')
}

const waits = (job: Job): Promise<boolean> => job.moveToWaitingChildren('token')

const childOf = (job: Job, id: string) => ({ child: { id, queue: job.queueQualifiedName } })

const WAITS: Readonly<Record<string, Scenario>> = {
  'any of its children': { given: activeParent, call: waits },
  'one of its children': { given: activeParent, call: (job) => job.moveToWaitingChildren('token', childOf(job, 'a')) },
  'a child that is not its own': {
    given: activeParent,
    call: (job) => job.moveToWaitingChildren('token', childOf(job, 'c')),
  },
  'a child that has ended': {
    async given(one) {
      await activeParent(one)
      await one.complete('a')
    },
    call: (job) => job.moveToWaitingChildren('token', childOf(job, 'a')),
  },
  'children, although it has none': {
    async given(one) {
      await one.add('j')
      await one.start('j')
      await lock(one, 'j')
    },
    call: waits,
  },
  'its children, without a lock': {
    async given(one) {
      await activeParent(one)
      await unlockTasks(one.redis, one.keys, 'j')
    },
    call: (job) => job.moveToWaitingChildren('0'),
  },
  'its children, after it has lost its lock': {
    async given(one) {
      await activeParent(one)
      await unlockTasks(one.redis, one.keys, 'j')
    },
    call: waits,
  },
  'its children, while another worker has it': {
    async given(one) {
      await activeParent(one)
      await lock(one, 'j', 'another')
    },
    call: waits,
  },
  'its children, one of which has failed': {
    async given(one) {
      await activeParent(one)
      await one.redis.zadd(`${one.keys.job('j')}:unsuccessful`, 1, 'a')
    },
    call: waits,
  },
  'its children, although it is gone': {
    given: activeParent,
    async call(job, { redis, keys }) {
      await redis.del(keys.job('j'), keys.lock('j'))
      await waits(job)
    },
    isBroken: true,
  },
}

describe('an active job waits for', () => {
  it.each(Object.entries(WAITS))('%s, as in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('its children, or is refused with BullMQ’s codes', async () => {
    const outcome = (name: string) => expectSame(WAITS[name] ?? expect.fail())
    expect(await outcome('any of its children')).toEqual({ returned: true })
    expect(await outcome('a child that has ended')).toEqual({ returned: false })
    expect(await outcome('its children, after it has lost its lock')).toMatchObject({ code: -2 })
    expect(await outcome('its children, while another worker has it')).toMatchObject({ code: -6 })
    expect(await outcome('its children, one of which has failed')).toMatchObject({ code: -9 })
    expect(await outcome('its children, although it is gone')).toMatchObject({ code: -1 })
  })

  it('nothing if it is not active, and keeps its lock', async () => {
    const one = stage('bullpen')
    await activeParent(one)
    await one.redis.del(one.keys.active)
    const job = (await one.queue.getJob('j')) ?? expect.fail()
    await expect(waits(job)).rejects.toMatchObject({ code: -3 })
    expect(await lockOwner(one.redis, one.keys, 'j')).toBe('token')
  })

  it('its children, and meanwhile holds no place of its concurrency key', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await activeParent(one)
    await redis.hset(keys.job('j'), 'lane', '1 tenant')
    await redis.hset(keys.keyLimits, 'concurrency', 2)
    await redis.zadd(keys.activeByKey, 1, 'tenant')
    await waits((await queue.getJob('j')) ?? expect.fail())
    expect(await redis.exists(keys.active, keys.activeByKey)).toBe(0)
  })
})

const released = (job: Job): Promise<boolean> => job.removeChildDependency()

const RELEASES: Readonly<Record<string, Scenario>> = {
  'its only child': { given: (one) => one.addFlow({ j: {} }), call: released },
  'its only child, in a paused queue': {
    given: (one) => one.addFlow({ j: {} }),
    async call(job, { queue }) {
      await queue.pause()
      return released(job)
    },
  },
  'one of its children': { given: (one) => one.addFlow({ j: {}, other: {} }), call: released },
  'a child that has ended': {
    async given(one) {
      await one.addFlow({ j: {}, other: {} })
      await one.complete('j')
    },
    call: released,
  },
  'a child, while it is active': {
    async given(one) {
      await one.addFlow({ j: {} })
      await one.redis.zrem(one.keys.waitingChildren, 'p')
      await one.start('p')
    },
    call: released,
  },
  'a child, although it is gone': {
    given: (one) => one.addFlow({ j: {} }),
    async call(job, { redis, keys }) {
      await redis.del(keys.job('p'))
      return released(job)
    },
    isBroken: true,
  },
  'a child that is gone': {
    given: (one) => one.addFlow({ j: {}, other: {} }),
    async call(job, { redis, keys }) {
      await redis.del(keys.job('j'))
      return released(job)
    },
    isBroken: true,
  },
}

describe('the parent of a flow', () => {
  it.each(Object.entries(RELEASES))('no longer waits for %s, as in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('no longer waits for a child, or that is refused with BullMQ’s codes', async () => {
    const outcome = (name: string) => expectSame(RELEASES[name] ?? expect.fail())
    expect(await outcome('its only child')).toEqual({ returned: true })
    expect(await outcome('a child that has ended')).toEqual({ returned: false })
    expect(await outcome('a child, although it is gone')).toMatchObject({ code: -5 })
    expect(await outcome('a child that is gone')).toMatchObject({ code: -1 })
  })
})

/** The jobs of a paused queue where older versions of BullMQ put them. */
const pausedBefore =
  (ids: readonly string[]) =>
  async ({ queue, add, redis, keys }: Stage): Promise<void> => {
    await add('j')
    await queue.pause()
    await redis.rpush(`${keys.base}paused`, ...ids)
  }

const many = Array.from({ length: 7_002 }, (_, i) => `${i}`)

const pauses = (_: Job, { queue }: Stage): Promise<void> => queue.pause()
const resumes = (_: Job, { queue }: Stage): Promise<void> => queue.resume()

const PAUSES: Readonly<Record<string, Scenario>> = {
  'a pause of a queue': { given: between(), call: pauses },
  'a pause of a paused queue': {
    async given(one) {
      await one.add('j')
      await one.queue.pause()
    },
    call: pauses,
  },
  'a pause of a queue with a marker': {
    given: between(),
    async call(_, { queue }) {
      await queue.add('x', {}, { jobId: 'last' })
      await queue.pause()
    },
  },
  'a resumption of a queue in which jobs wait': {
    async given(one) {
      await between()(one)
      await one.queue.pause()
    },
    call: resumes,
  },
  'a resumption of a queue in which only a job with a priority waits': {
    async given(one) {
      await one.add('j', { priority: 3 })
      await one.queue.pause()
    },
    call: resumes,
  },
  'a resumption of a queue in which only a delayed job waits': {
    async given(one) {
      await one.add('j', { delay: 60_000 })
      await one.queue.pause()
    },
    call: resumes,
  },
  'a resumption of a queue in which nothing waits': {
    async given(one) {
      await one.add('j')
      await one.start('j')
      await one.queue.pause()
    },
    call: resumes,
  },
  'a resumption of a queue that is not paused': { given: between(), call: resumes },
  'a resumption of a queue with jobs of an older BullMQ': {
    given: pausedBefore(['old', 'older']),
    call: resumes,
    isBroken: true,
  },
  'a resumption of a queue with many jobs of an older BullMQ': {
    given: pausedBefore(many),
    call: resumes,
    isBroken: true,
  },
  'a resumption of a queue with nothing but jobs of an older BullMQ': {
    async given(one) {
      await pausedBefore(many)(one)
      await one.start('j')
    },
    call: resumes,
    isBroken: true,
  },
}

describe('a job of a job scheduler that waits for a child', () => {
  it.each(['is completed', 'is removed'])('goes on when the child %s', async (how) => {
    const { queue, redis, keys, fetch, end, close } = await openWorld(
      inject('redisUrl'),
      `t-${randomUUID().slice(0, 12)}`,
      {
        leads: false,
      },
    )
    onTestFinished(close)
    await queue.upsertJobScheduler('nightly', { every: 3_600_000 }, { name: 'parent' })
    await queue.promoteJobs()
    expect(await fetch('plain')).toBe(true)
    const endWith = (plain: Parameters<typeof end>[2]) => end(1, () => ({ kind: 'dead' }), plain)
    await endWith(async (job, token) => {
      await queue.add('child', {}, { jobId: 'c', parent: { id: job.id ?? '', queue: job.queueQualifiedName } })
      if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError()
    })
    expect(await redis.zcard(keys.waitingChildren)).toBe(1)
    if (how === 'is removed') await queue.remove('c')
    else {
      expect(await fetch('plain')).toBe(true)
      await endWith(async () => 'done')
    }
    expect(await redis.zcard(keys.waitingChildren)).toBe(0)
  })
})

describe('a team’s own Queue', () => {
  it.each(Object.entries(PAUSES))('does with %s what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('wakes a worker when it resumes tasks in lanes, and at the time at which a lane may start a task', async () => {
    const { redis, keys, queue } = stage('bullpen')
    await queue.pause()
    const soon = Date.now() + 1_000
    await redis.zadd(keys.laneTimes, soon, 'tenant')
    await queue.resume()
    expect(await redis.zrange(keys.marker, 0, '-1', 'WITHSCORES')).toEqual(['1', `${soon}`])
    await queue.pause()
    await redis.zadd(keys.lanes, 1, 'tenant')
    await queue.resume()
    expect(await redis.zrange(keys.marker, 0, '-1', 'WITHSCORES')).toEqual(['0', '0'])
  })
})

const OLD = Date.now() - 60_000

/** Two old jobs and a new one, in this order, `j` being the second one. */
const aged =
  (more: JobsOptions = {}) =>
  async (one: Stage): Promise<void> => {
    await one.add('oldest', { timestamp: OLD - 2, ...more })
    await one.add('j', { timestamp: OLD, ...more })
    await one.add('new', more)
  }

const active = async (one: Stage): Promise<void> => {
  await aged()(one)
  for (const id of ['oldest', 'j', 'new']) await one.start(id)
}

/** Stores that these jobs have ended one after the other, a minute ago. */
async function endedBefore({ redis, keys }: Stage, how: 'fail' | 'complete', ids: readonly string[]): Promise<void> {
  const byError = await redis.keys(`${keys.base}fingerprint:*`)
  const sets = how === 'fail' ? [keys.failed, keys.dead, ...byError] : [keys.completed]
  for (const set of sets) for (const [i, id] of ids.entries()) await redis.zadd(set, 'XX', OLD + i, id)
}

const agedEnds =
  (how: 'fail' | 'complete') =>
  async (one: Stage): Promise<void> => {
    const ids = ['oldest', 'j']
    await aged()(one)
    for (const id of ids) await one[how](id)
    await endedBefore(one, how, ids)
  }

const CLEANS: Readonly<Record<string, Scenario>> = {
  'old waiting jobs': { given: aged(), call: (_, { queue }) => queue.clean(30_000, 0, 'wait') },
  'all waiting jobs': { given: aged(), call: (_, { queue }) => queue.clean(0, 0, 'wait') },
  'the oldest waiting job': { given: aged(), call: (_, { queue }) => queue.clean(30_000, 1, 'wait') },
  'old jobs with a priority': {
    given: aged({ priority: 3 }),
    call: (_, { queue }) => queue.clean(30_000, 0, 'prioritized'),
  },
  'one job with a priority': {
    given: aged({ priority: 3 }),
    call: (_, { queue }) => queue.clean(30_000, 1, 'prioritized'),
  },
  'old delayed jobs': {
    given: aged({ delay: 100_000 }),
    call: (_, { queue }) => queue.clean(30_000, 0, 'delayed'),
  },
  'delayed jobs, one of which is the next one of a job scheduler': {
    async given(one) {
      await aged({ delay: 100_000 })(one)
      await one.addScheduler()
    },
    call: (_, { queue }) => queue.clean(0, 0, 'delayed'),
  },
  'active jobs that no worker has': {
    async given(one) {
      await active(one)
      await lock(one, 'oldest')
    },
    call: (_, { queue }) => queue.clean(0, 0, 'active'),
  },
  'completed jobs': { given: agedEnds('complete'), call: (_, { queue }) => queue.clean(0, 0, 'completed') },
  'one completed job': { given: agedEnds('complete'), call: (_, { queue }) => queue.clean(0, 1, 'completed') },
  'completed jobs of which none is old': {
    given: agedEnds('complete'),
    call: (_, { queue }) => queue.clean(600_000, 0, 'completed'),
  },
  'failed jobs': { given: agedEnds('fail'), call: (_, { queue }) => queue.clean(0, 0, 'failed') },
  'jobs with a deduplication id': {
    given: (one) => one.add('j', { deduplication: { id: 'one' } }),
    call: (_, { queue }) => queue.clean(0, 0, 'wait'),
  },
  'all children of a parent': {
    given: (one) => one.addFlow({ j: {}, other: {} }),
    call: async (_, { queue }) => (await queue.clean(0, 0, 'wait')).toSorted(),
  },
  'a child of a parent that waits for another one': {
    given: (one) => one.addFlow({ j: {}, later: { delay: 60_000 } }),
    call: (_, { queue }) => queue.clean(0, 0, 'wait'),
  },
}

describe('a clean of', () => {
  it.each(Object.entries(CLEANS))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('active tasks gives their places of concurrency keys back', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await active(one)
    for (const id of ['oldest', 'j']) await redis.hset(keys.job(id), 'lane', '1 tenant')
    await redis.hset(keys.keyLimits, 'concurrency', 9)
    await redis.zadd(keys.activeByKey, 2, 'tenant')
    await lock(one, 'oldest')
    expect((await queue.clean(0, 0, 'active')).toSorted()).toEqual(['j', 'new'])
    expect(await redis.zscore(keys.activeByKey, 'tenant')).toBe('1')
  })
})

/** Three jobs have ended, `j` being the second one, and another waits. */
const threeEnds =
  (how: 'fail' | 'complete', more: JobsOptions = {}) =>
  async (one: Stage): Promise<void> => {
    const ids = ['first', 'j', 'last']
    await one.add('other')
    for (const id of ids) {
      await one.add(id, more)
      await one[how](id)
    }
    await endedBefore(one, how, ids)
  }

const RETURNS: Readonly<Record<string, Scenario>> = {
  'all failed jobs': { given: threeEnds('fail'), call: (_, { queue }) => queue.retryJobs() },
  'all failed jobs, one after the other': {
    given: threeEnds('fail'),
    call: (_, { queue }) => queue.retryJobs({ count: 1 }),
  },
  'the failed jobs up to a time': {
    given: threeEnds('fail'),
    call: (_, { queue }) => queue.retryJobs({ state: 'failed', timestamp: OLD + 1 }),
  },
  'all completed jobs': {
    given: threeEnds('complete'),
    call: (_, { queue }) => queue.retryJobs({ state: 'completed' }),
  },
  'failed jobs with a priority': {
    given: threeEnds('fail', { priority: 3 }),
    call: (_, { queue }) => queue.retryJobs(),
  },
  'the failed jobs of a paused queue': {
    given: threeEnds('fail'),
    async call(_, { queue }) {
      await queue.pause()
      await queue.retryJobs()
    },
  },
  'a failed child': {
    given: childThatFailed({ ignoreDependencyOnFailure: true }),
    call: (_, { queue }) => queue.retryJobs(),
  },
  'all delayed jobs': {
    async given(one) {
      await delayed()(one)
      await delayed({ jobId: 'urgent', priority: 3 })(one)
    },
    call: (_, { queue }) => queue.promoteJobs(),
  },
  'all delayed jobs, one after the other': {
    given: delayed(),
    call: (_, { queue }) => queue.promoteJobs({ count: 1 }),
  },
  'no delayed jobs': { given: (one) => one.add('j'), call: (_, { queue }) => queue.promoteJobs() },
}

describe('a return of', () => {
  it.each(Object.entries(RETURNS))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('all failed tasks leaves those whose compensations were released', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await threeEnds('fail')(one)
    await redis.hset(keys.job('first'), 'compensated', 1)
    await queue.retryJobs({ count: 1 })
    expect(await redis.zrange(keys.failed, 0, '-1')).toEqual(['first'])
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['last', 'j', 'other'])
  })

  it('failed tasks with a lane puts them there', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await threeEnds('fail')(one)
    await redis.hset(keys.job('j'), 'lane', '1 tenant')
    await queue.retryJobs()
    expect(await redis.lrange(keys.lane('tenant'), 0, -1)).toEqual(['j'])
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual(['last', 'first', 'other'])
  })
})

/** Jobs in all places. */
const everywhere = async (one: Stage): Promise<void> => {
  await ended('fail')(one)
  await one.add('done')
  await one.complete('done')
  await one.add('waiting', { deduplication: { id: 'one' } })
  await one.add('later', { delay: 60_000 })
  await one.add('urgent', { priority: 3 })
  await one.addFlow({ child: {}, sibling: { delay: 60_000 } })
  await one.addScheduler()
}

const EMPTIES: Readonly<Record<string, Scenario>> = {
  'the waiting jobs': { given: everywhere, call: (_, { queue }) => queue.drain() },
  'the waiting and the delayed jobs': { given: everywhere, call: (_, { queue }) => queue.drain(true) },
  'a whole queue': { given: everywhere, call: (_, { queue }) => queue.obliterate() },
  'a whole queue, one job after the other': {
    given: everywhere,
    call: (_, { queue }) => queue.obliterate({ count: 1 }),
  },
  'a queue with active jobs': {
    async given(one) {
      await everywhere(one)
      await one.start('waiting')
    },
    call: (_, { queue }) => queue.obliterate(),
  },
  'a queue with active jobs by force': {
    async given(one) {
      await everywhere(one)
      await one.start('waiting')
      await lock(one, 'waiting')
    },
    call: (_, { queue }) => queue.obliterate({ force: true }),
  },
  'a queue that is not paused': {
    given: everywhere,
    call: (_, { queue }) => queue.getBackend().obliterate({ count: 1, force: false }),
  },
}

describe('emptying', () => {
  it.each(Object.entries(EMPTIES))('%s does what it does in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('a queue is refused with BullMQ’s errors', async () => {
    const outcome = (name: string) => expectSame(EMPTIES[name] ?? expect.fail())
    expect(await outcome('a queue with active jobs')).toMatchObject({ message: expect.stringContaining('active jobs') })
    expect(await outcome('a queue that is not paused')).toMatchObject({
      message: expect.stringContaining('non-paused'),
    })
  })

  it('the waiting jobs keeps the next one of a job scheduler', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await one.add('j')
    await one.addScheduler()
    const [next = expect.fail()] = await queue.getDelayed()
    await next.promote()
    await one.add('k')
    await queue.drain()
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([next.id])
  })

  it.each([
    ['drain', (queue: Queue) => queue.drain()],
    ['obliterate', (queue: Queue) => queue.obliterate({ count: 1 })],
  ])('the tasks in lanes, by %s, leaves nothing of the lanes', async (_, empty) => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    for (const [id, priority] of [
      ['j', 0],
      ['k', 3],
    ] as const) {
      await one.add(id, { priority })
      await one.fail(id)
      await redis.hset(keys.job(id), 'lane', '1 tenant')
      await (await queue.getJob(id))?.retry('failed')
    }
    await empty(queue)
    const ofLanes = [keys.lanes, keys.lane('tenant'), keys.lanePriorities('tenant'), keys.turns, keys.turnState]
    expect(await redis.exists(...ofLanes, keys.job('j'), keys.job('k'))).toBe(0)
  })
})

describe('a removal of orphaned jobs', () => {
  it('does what it does in BullMQ', async () => {
    await expectSame({
      async given(one) {
        await everywhere(one)
        await one.start('waiting')
        for (const id of ['orphan', 'another']) await one.add(id)
        await one.queue.addJobLog('orphan', 'a line')
        await one.redis.rpush(`${one.keys.job('none')}:logs`, 'a line')
        for (const id of ['orphan', 'another']) await one.redis.lrem(one.keys.wait, 1, id)
      },
      // One page has all keys. BullMQ counts a job again whose keys are on several pages.
      call: (_, { queue }) => queue.removeOrphanedJobs(1_000_000),
      isBroken: true,
    })
  })

  it('scans in the form that BullMQ’s clients for all libraries take', async () => {
    const { queue, redis, keys, add } = stage('bullpen')
    await add('orphan')
    await redis.lrem(keys.wait, 1, 'orphan')
    const { connection } = queue.getBackend()
    const client = await connection.client
    const scan = vi.fn(client.scan.bind(client))
    const watched = new Proxy(client, { get: (of, name) => (name === 'scan' ? scan : Reflect.get(of, name)) })
    vi.spyOn(connection, 'client', 'get').mockResolvedValue(watched)
    expect(await queue.removeOrphanedJobs(1_000_000)).toBe(1)
    expect(scan.mock.calls).toEqual([['0', { MATCH: `${keys.base}*`, COUNT: 1_000_000 }]])
  })

  it('leaves what Bullpen stores, and the tasks in lanes', async () => {
    const one = stage('bullpen')
    const { redis, keys, queue } = one
    await ended('fail')(one)
    await redis.hset(keys.job('j'), 'lane', '1 logs')
    await (await queue.getJob('j'))?.retry('failed')
    await redis.hset(keys.uniqueKeys, 'name', 'j finished')
    const before = await stateOf(one, { ignores: () => false })
    expect(await queue.removeOrphanedJobs()).toBe(0)
    expect(await stateOf(one, { ignores: () => false })).toEqual(before)
  })
})
