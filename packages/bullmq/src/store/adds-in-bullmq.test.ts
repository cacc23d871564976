// What the adds of a team's own Queue and FlowProducer leave in Redis is the same with Bullpen's scripts and in plain BullMQ.
import { randomUUID } from 'node:crypto'
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'
import {
  createRedisBackend,
  type DeduplicationOptions,
  type FlowJob,
  FlowProducer,
  Job,
  type JobsOptions,
  Queue,
} from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { repairIndex } from '../internals/status/index-repair.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { bullpenBackend } from './bullpen-backend.ts'
import { stateOf } from './queue-state.fixture.ts'

const NOW = Date.now()

function stage(isBullpens: boolean) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'q')
  const options = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const backend = isBullpens ? bullpenBackend() : createRedisBackend
  const [queue, flows] = [new Queue('q', options, backend), new FlowProducer(options, backend)]
  onTestFinished(async () => {
    await Promise.all([queue.close(), flows.close()])
    redis.disconnect()
  })
  const add = (jobId: string, more: JobsOptions = {}) => queue.add('x', { of: jobId }, { jobId, ...more })
  const start = async (id: string): Promise<Job> => {
    await redis.lrem(keys.wait, 1, id)
    await redis.lpush(keys.active, id)
    return (await Job.fromId(queue, id)) ?? expect.fail()
  }
  return {
    ...{ namespace, redis, keys, queue, flows, add, start },
    parent: (id: string) => ({ id, queue: queue.qualifiedName }),
    // The token 0 stands for no lock.
    complete: async (id: string) => (await start(id)).moveToCompleted(`of ${id}`, '0', false),
    /** Adds the parent `p` with these children. */
    addFlow: (children: readonly FlowJob[], more: JobsOptions = {}) =>
      flows.add({ name: 'parent', queueName: 'q', opts: { jobId: 'p', ...more }, children: [...children] }),
    /** Adds the parent `p`, which waits for no child any more. */
    async addParent(more: JobsOptions = {}) {
      await flows.add({ name: 'parent', queueName: 'q', opts: { jobId: 'p', ...more }, children: [child('gone')] })
      await redis.del(keys.dependencies('p'))
    },
  }
}

type Stage = ReturnType<typeof stage>

const child = (jobId: string, opts: JobsOptions = {}, more: Partial<FlowJob> = {}): FlowJob => ({
  ...{ name: 'x', queueName: 'q', data: { of: jobId }, opts: { jobId, ...opts } },
  ...more,
})

interface Scenario {
  /** Returns what is compared besides what Redis holds. */
  readonly run: (stage: Stage) => Promise<unknown>
  /** The status index needs a repair, because the test itself has changed a job. */
  readonly isBroken?: true
}

/** Everything that Redis holds, except for what only Bullpen stores. */
function left(one: Stage): Promise<Record<string, unknown>> {
  return stateOf(one, { ignores: (key) => /:(totals|scheduled|retrying|recently-removed)$/.test(key) })
}

/** What a call returns, without the times, or throws. */
async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    const value = await call
    return value instanceof Job ? value.id : value
  } catch (error) {
    const { message, code } = error as Error & { readonly code?: unknown }
    return { message, code }
  }
}

/** Expects that each job is counted, and charged for until its end. */
async function expectCounted({ redis, keys }: Stage): Promise<void> {
  const totals = await redis.hgetall(keys.totals)
  let accepted = Number(totals['removed'] ?? 0)
  let bytes = 0
  for (const key of await redis.keys(`${keys.base}*`)) {
    if ((await redis.type(key)) !== 'hash') continue
    const [timestamp, data, finishedOn] = await redis.hmget(key, 'timestamp', 'data', 'finishedOn')
    if (timestamp == null) continue
    accepted++
    if (finishedOn == null) bytes += Buffer.byteLength(data ?? '') + TASK_OVERHEAD_BYTES
  }
  expect([totals['accepted'], totals['bytes']].map((sum) => Number(sum ?? 0))).toEqual([accepted, bytes])
  expect(await repairIndex(redis, keys)).toBe(0)
}

/** Expects the same outcome and the same data with and without Bullpen's scripts. Returns the outcome. */
async function expectSame({ run, isBroken }: Scenario): Promise<unknown> {
  const results = []
  for (const isBullpens of [false, true]) {
    const one = stage(isBullpens)
    const returned = await outcomeOf(run(one))
    const text = JSON.stringify(returned ?? null).replaceAll(one.namespace, 'ns')
    results.push({ returned: JSON.parse(text) as unknown, left: await left(one) })
    if (isBullpens && isBroken === undefined) await expectCounted(one)
  }
  expect(results[1]).toEqual(results[0])
  return results[0]?.returned
}

const all = (adds: Readonly<Record<string, JobsOptions>>, prepare?: (one: Stage) => Promise<unknown>): Scenario => ({
  async run(one) {
    await prepare?.(one)
    for (const [id, options] of Object.entries(adds)) await one.add(id, options)
  },
})

const KINDS: Readonly<Record<string, JobsOptions>> = {
  a: {},
  b: { lifo: true },
  c: { priority: 3 },
  d: { priority: 1 },
  e: { priority: 3, lifo: true },
  f: { delay: 60_000, timestamp: NOW },
  g: { delay: 60_000, timestamp: NOW, priority: 2 },
  h: { delay: 30_000 },
  i: { delay: -1 },
  j: { priority: -1 },
}

const OPTIONS: JobsOptions = {
  ...{ attempts: 3, backoff: { type: 'exponential', delay: 1_000, jitter: 0.5 }, keepLogs: 5, stackTraceLimit: 2 },
  ...{ removeOnComplete: { age: 60, count: 7 }, removeOnFail: true, sizeLimit: 1_000, timestamp: NOW },
  ...{ telemetry: { metadata: 'm', omitContext: true }, continueParentOnFailure: true, repeatJobKey: 'scheduler' },
}

const ADDS: Readonly<Record<string, Scenario>> = {
  'a job of each kind': all(KINDS),
  'jobs in a paused queue': all(KINDS, ({ queue }) => queue.pause()),
  'jobs in a queue at its concurrency': all(KINDS, async ({ queue, add, start }) => {
    await queue.setGlobalConcurrency(1)
    await add('first')
    await start('first')
  }),
  'a job in a queue that does not say how many events it keeps': all({ a: {} }, async (one) => {
    await one.queue.waitUntilReady()
    await one.redis.del(one.keys.meta)
  }),
  'jobs without ids': {
    run: async ({ queue }) => [(await queue.add('x', {})).id, (await queue.add('x', {}, { priority: 2 })).id],
  },
  'a job without a name and data': { run: ({ queue }) => queue.add('', undefined) },
  'data that is not ASCII': { run: ({ queue }) => queue.add('ñ', { of: 'Grüße, 世界 🎉', none: null }) },
  'a job with many options': all({ a: OPTIONS }),
  'options that are undefined or null': {
    run: ({ queue }) =>
      queue.add('x', {}, { jobId: 'a', attempts: undefined, keepLogs: null, backoff: null } as unknown as JobsOptions),
  },
  'a job of an earlier time': all({ a: { timestamp: 1_600_000_000_000 } }),
  'a job that is too large': all({ a: { sizeLimit: 2 } }),
  'a job with a number as its id': all({ 12: {} }),
}

const EXISTING: Readonly<Record<string, Scenario>> = {
  'a job that waits': {
    run: async ({ add }) => [(await add('a')).id, (await add('a', { delay: 60_000 })).id],
  },
  'a job that is delayed or has a priority': all({ a: { delay: 60_000 }, b: { priority: 2 } }, async ({ add }) => {
    await add('a')
    await add('b')
  }),
  'a job that is completed': {
    async run({ add, complete }) {
      await add('a')
      await complete('a')
      return add('a')
    },
  },
  'a job that gets a parent': {
    async run({ add, addFlow, parent }) {
      await addFlow([child('c')])
      await add('a')
      return add('a', { parent: parent('p'), failParentOnFailure: true })
    },
  },
  'a job that gets the same parent again': {
    async run({ addFlow, add, parent }) {
      await addFlow([child('a')])
      return add('a', { parent: parent('p') })
    },
  },
  'a child of another parent': {
    async run({ addFlow, add, parent }) {
      await addFlow([child('a')])
      await add('other')
      return add('a', { parent: parent('other') })
    },
  },
  'a child whose parent is gone': {
    async run({ addFlow, add, parent, redis, keys }) {
      await addFlow([child('a')])
      await redis.del(keys.job('p'), keys.dependencies('p'))
      await redis.zrem(keys.waitingChildren, 'p')
      await add('other')
      return add('a', { parent: parent('other') })
    },
    isBroken: true,
  },
  'a completed job whose parent waits for another child': {
    async run({ addFlow, add, complete, parent }) {
      await addFlow([child('c')])
      await add('a')
      await complete('a')
      return add('a', { parent: parent('p') })
    },
  },
  ...Object.fromEntries(
    Object.entries({ '': {}, ' with a priority': { priority: 2 }, ' with a delay': { delay: 60_000 } }).map(
      ([which, options]): [string, Scenario] => [
        `a completed job whose parent${which} waits for nothing else`,
        {
          async run({ addParent, add, complete, parent }) {
            await addParent(options)
            await add('a')
            await complete('a')
            return add('a', { parent: parent('p') })
          },
        },
      ],
    ),
  ),
}

const CHILDREN: Readonly<Record<string, Scenario>> = {
  'a child of each kind': {
    async run({ add, addFlow, parent }) {
      await addFlow([child('c')])
      const own: JobsOptions[] = [{ failParentOnFailure: true }, { ignoreDependencyOnFailure: true, delay: 60_000 }]
      own.push({ removeDependencyOnFailure: true, priority: 2 }, { continueParentOnFailure: true })
      for (const [n, options] of own.entries()) await add(`child-${n}`, { ...options, parent: parent('p') })
    },
  },
  'a child without a parent': { run: ({ add, parent }) => add('a', { parent: parent('none') }) },
}

const DEDUPLICATIONS: Readonly<Record<string, Omit<DeduplicationOptions, 'id'>>> = {
  'a deduplication id': {},
  'a deduplication id for a time': { ttl: 60_000 },
  'a deduplication id whose time is extended': { ttl: 60_000, extend: true },
  'a deduplication id that is extended without a time': { extend: true },
  'a deduplication id that replaces': { replace: true },
  'a deduplication id that replaces for a time': { replace: true, ttl: 60_000 },
  'a deduplication id that replaces for a time that is extended': { replace: true, ttl: 60_000, extend: true },
  'a deduplication id that keeps the last job': { keepLastIfActive: true },
  'a deduplication id that keeps the last job, with a time': { keepLastIfActive: true, ttl: 60_000 },
  'a deduplication id that keeps the last job, whose time is extended': {
    ...{ keepLastIfActive: true, ttl: 60_000, extend: true },
  },
  'a deduplication id that replaces and keeps the last job': { keepLastIfActive: true, replace: true, ttl: 60_000 },
  'a deduplication id that reschedules': { reschedule: true },
  'a deduplication id that reschedules and replaces': { reschedule: true, replace: true },
  'a deduplication id that reschedules, whose time is extended': { reschedule: true, ttl: 60_000, extend: true },
}

/** What has become of the job that has the deduplication id. */
const HOLDERS: Readonly<Record<string, (one: Stage, options: JobsOptions) => Promise<unknown>>> = {
  'was not used': async () => {},
  'a waiting job has': ({ add }, options) => add('a', options),
  'a delayed job has': ({ add }, options) => add('a', { ...options, delay: 60_000 }),
  'a retrying job has': async ({ add, redis, keys }, options) => {
    await add('a', { ...options, delay: 60_000 })
    await redis.hset(keys.job('a'), 'atm', '1')
    if ((await redis.zrem(keys.scheduled, 'a')) === 0) return
    await redis.zadd(keys.retrying, (await redis.zscore(keys.delayed, 'a')) ?? '', 'a')
  },
  'an active job has': async ({ add, start }, options) => {
    await add('a', options)
    await start('a')
  },
  'a completed job had': async ({ add, complete }, options) => {
    await add('a', options)
    await complete('a')
  },
  'a job that is gone has': async ({ add, redis, keys }, options) => {
    await add('a', options)
    await redis.del(keys.job('a'))
    await redis.lrem(keys.wait, 1, 'a')
  },
}

function deduplicated(mode: Omit<DeduplicationOptions, 'id'>, holder: keyof typeof HOLDERS): Scenario {
  const options = { deduplication: { id: 'one', ...mode } }
  return {
    async run(one) {
      const { redis, keys, queue, add } = one
      const key = keys.deduplication('one')
      await HOLDERS[holder]?.(one, options)
      // A time that was extended is longer than this one.
      if ((await redis.pttl(key)) > 0) await redis.pexpire(key, 20_000)
      const added = [(await queue.add('x', { n: 1 }, options)).id, (await add('c', { ...options, delay: 30_000 })).id]
      const isExtended = (await redis.pttl(key)) > 25_000
      if ((await redis.lpos(keys.active, 'a')) !== null) {
        await (await Job.fromId(queue, 'a'))?.moveToCompleted(1, '0', false)
      }
      return { added, isExtended }
    },
    ...(holder === 'a job that is gone has' ? { isBroken: true } : {}),
  }
}

const MIXED: Readonly<Record<string, Scenario>> = {
  'a job that is kept for the end of another one, whose deduplication id would expire before': {
    async run({ add, start, redis, keys }) {
      await add('a', { deduplication: { id: 'one', ttl: 60_000 } })
      await start('a')
      await add('b', { deduplication: { id: 'one', keepLastIfActive: true } })
      return redis.pttl(keys.deduplication('one'))
    },
  },
}

const FLOWS: Readonly<Record<string, Scenario>> = {
  'a flow without children': { run: ({ flows }) => flows.add(child('a')).then(({ job }) => job.id) },
  'a flow with children of all kinds': {
    async run({ addFlow }) {
      const below = child(
        'below',
        { priority: 2 },
        { children: [child('deepest'), child('elsewhere', {}, { queueName: 'r' })] },
      )
      const children = Object.entries(KINDS).map(([id, options]) => child(id, options))
      await addFlow([...children, below, child('fatal', { failParentOnFailure: true })], { delay: 60_000, priority: 5 })
    },
  },
  'a flow in a paused queue': {
    async run({ queue, addFlow }) {
      await queue.pause()
      await addFlow([child('a'), child('b', { delay: 60_000 })])
    },
  },
  'a flow whose only child is completed': {
    async run({ add, complete, addFlow }) {
      await add('a')
      await complete('a')
      await addFlow([child('a')])
    },
  },
  'a delayed flow whose children are completed': {
    async run({ add, complete, addFlow }) {
      for (const id of ['a', 'b']) {
        await add(id)
        await complete(id)
      }
      await addFlow([child('a'), child('b')], { delay: 60_000 })
    },
  },
  'a flow with a completed child and others': {
    async run({ add, complete, addFlow }) {
      for (const id of ['a', 'b']) await add(id)
      await complete('a')
      await addFlow([child('a'), child('b'), child('c')])
    },
  },
  'a flow with a completed child and one of another parent': {
    async run({ add, complete, flows, addFlow }) {
      await flows.add(child('other', {}, { children: [child('b')] }))
      await add('a')
      await complete('a')
      await addFlow([child('a'), child('b')])
    },
  },
  'a flow that exists': {
    async run({ addFlow }) {
      await addFlow([child('a')])
      await addFlow([child('a'), child('b')])
    },
  },
  'a flow below a job': {
    async run({ add, flows, parent }) {
      await add('root')
      return (await flows.add(child('a', { parent: parent('root') }, { children: [child('b')] }))).job.id
    },
  },
  'several flows': {
    async run({ flows }) {
      const trees = await flows.addBulk([child('a', {}, { children: [child('b')] }), child('c'), child('a')])
      return trees.map(({ job }) => job.id)
    },
  },
  'no flows': { run: ({ flows }) => flows.addBulk([]) },
}

const BULKS: Readonly<Record<string, Scenario>> = {
  'many jobs at once': {
    async run({ queue }) {
      const kinds = [{}, { priority: 2 }, { delay: 60_000, timestamp: NOW }]
      const jobs = Array.from({ length: 120 }, (_, n) => ({ name: `x-${n}`, data: { n }, opts: kinds[n % 3] ?? {} }))
      return (await queue.addBulk(jobs)).map(({ id }) => id)
    },
  },
  'jobs at once, one of which exists, one has a deduplication id, and one lacks its parent': {
    async run({ queue, add, parent }) {
      await add('a')
      const options: JobsOptions[] = [
        { jobId: 'a' },
        { deduplication: { id: 'one' } },
        { deduplication: { id: 'one' } },
      ]
      const jobs = [...options, { parent: parent('none') }, { jobId: 'z' }].map((opts) => ({
        name: 'x',
        data: {},
        opts,
      }))
      return (await queue.addBulk(jobs)).map(({ id }) => id)
    },
  },
  'no jobs at once': { run: ({ queue }) => queue.addBulk([]) },
  'jobs in a transaction': {
    async run({ queue }) {
      const transaction = (await queue.getBackend().connection.client).multi()
      for (const [jobId, options] of Object.entries(KINDS)) {
        const job = new Job(queue, 'x', {}, { jobId, ...options }, jobId)
        void job.addJob(transaction as unknown as Parameters<Job['addJob']>[0])
      }
      return transaction.exec()
    },
  },
}

const SCENARIOS = { ...ADDS, ...EXISTING, ...CHILDREN, ...MIXED, ...FLOWS, ...BULKS }

describe.each(Object.entries(SCENARIOS))('%s', (_name, scenario) => {
  it('leaves what BullMQ’s own scripts leave', async () => {
    await expectSame(scenario)
  })
})

describe.each(Object.entries(DEDUPLICATIONS))('%s', (_name, mode) => {
  it.each(Object.keys(HOLDERS))('that %s leaves what BullMQ’s own scripts leave', async (holder) => {
    await expectSame(deduplicated(mode, holder))
  })
})

const REFUSED: Readonly<Record<string, (one: Stage) => Promise<unknown>>> = {
  'whose parent does not exist': ({ add, parent }) => add('a', { parent: parent('none') }),
  'that is the child of another parent': ({ add, parent }) => add('of-other', { parent: parent('p') }),
  'of a flow whose parent does not exist': ({ flows, parent }) =>
    flows.add(child('a', { parent: parent('none') }, { children: [child('b')] })),
}

describe('a job', () => {
  it.each(Object.entries(REFUSED))('%s is refused as in BullMQ, and writes nothing', async (_why, call) => {
    const outcomes = []
    for (const isBullpens of [false, true]) {
      const one = stage(isBullpens)
      await one.flows.add(child('other', {}, { children: [child('of-other')] }))
      await one.addFlow([child('c')])
      const withoutIds = async () => ({ ...(await left(one)), [one.keys.id.replace(one.namespace, 'ns')]: undefined })
      const before = await withoutIds()
      const outcome = JSON.stringify(await outcomeOf(call(one)))
      outcomes.push(JSON.parse(outcome.replaceAll(one.namespace, 'ns')))
      expect(await withoutIds()).toEqual(before)
    }
    expect(outcomes[1]).toEqual(outcomes[0])
    expect(outcomes[1]).toMatchObject({ code: expect.any(Number) })
  })

  it.each([Number.POSITIVE_INFINITY, Number.NaN])('whose delay is %d is refused', async (delay) => {
    const one = stage(true)
    await expect(one.add('a', { delay })).rejects.toThrow("the delay of job 'x' is not finite")
    expect(await one.redis.exists(one.keys.job('a'))).toBe(0)
  })

  it.each(['dead', 'lane'])('of a flow whose id is reserved, %s, lets the whole flow be refused', async (jobId) => {
    const one = stage(true)
    const refusal = `the job id '${jobId}' is the name of one of the queue's keys; use another id`
    await expect(one.addFlow([child('a'), child(jobId)])).rejects.toThrow(refusal)
    expect(await one.redis.exists(one.keys.job('p'), one.keys.job('a'))).toBe(0)
  })
})
