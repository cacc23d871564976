// BullMQ Workers that use Bullpen's queues without its backend: what the leader reports of them, and what becomes of the tasks.
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import {
  createRedisBackend,
  type Job,
  Queue,
  QueueEvents,
  UnrecoverableError,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openPatientFleet, status } from '../fleet/fleet.fixture.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { type SetupOptions, setup, short, silent } from '../setup.fixture.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { createHousekeeping } from './housekeeping.ts'
import { changeOf } from './unattached-workers.ts'

const LONG_MS = 60_000
const never = (): Promise<never> => new Promise(() => {})

/** A queue whose leader is the test: it visits the queue, at times that it chooses. */
async function stage(options: SetupOptions = {}) {
  const rig = await setup({ ...options, leads: false })
  const { namespace, redisUrl } = rig
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(namespace, 'rig')
  const base = { connection: redis, prefix: prefixOf(namespace, 'rig') }
  const reports: unknown[][] = []
  let aheadMs = 0
  /** A process that leads. */
  const leader = () => {
    const housekeeping = createHousekeeping({
      ...{ redis, namespace, process: 'test', now: () => Date.now() + aheadMs },
      forwarder: { forwardLeft: async () => {} },
      visits: { groups: async () => {}, runs: async () => {}, workers: async () => {} },
      unattached: {
        onFound: (queue, { workers }) => reports.push(['found', queue, ...workers]),
        onGone: (queue, { workers, tasks }) => reports.push(['gone', queue, tasks, ...workers]),
      },
      onExpired() {},
      onCancelled() {},
      onRepaired() {},
      onNewFingerprint() {},
      runDueSchedules: async () => undefined,
      watchSchedules: async () => {},
      onFailed: ({ error }) => reports.push(['failed', error]),
    })
    return async (visits = 1) => {
      for (let i = 0; i < visits; i++) {
        await housekeeping.visit({ name: 'rig' }, { fencing: 1, isOver: () => false })
        await housekeeping.settled()
      }
      return reports.splice(0)
    }
  }
  return {
    ...{ ...rig, redis, keys, base, leader, visit: leader() },
    wait: (ms: number) => {
      aheadMs += ms
    },
    /** What is known of such Workers. */
    known: async () => (await rig.broker.head('rig')).unattached,
    /** Starts a BullMQ Worker as a team may have one. Its name is 'old'. */
    async startWorker(
      processor: (job: Job) => Promise<unknown>,
      more: Partial<WorkerOptions> & { attached?: true } = {},
    ) {
      const { attached, ...settings } = more
      const options = { ...base, name: 'old', lockDuration: LONG_MS, ...settings }
      const worker = new Worker('rig', processor, options, attached ? bullpenBackend() : createRedisBackend)
      worker.on('error', () => {})
      onTestFinished(() => worker.close(true))
      await worker.waitUntilReady()
      return worker
    },
    /** What Redis does by itself once the Worker is dead and its locks and its mark have expired. */
    async expire(): Promise<void> {
      const held = await redis.lrange(keys.active, 0, -1)
      await redis.del(keys.stalledCheck, ...held.map(keys.lock))
    },
  }
}

const OLD = /^old at 127\.0\.0\.1:\d+$/

it("a Worker without Bullpen's backend is named when it starts and when it has gone, and its tasks are counted, listed and run", async () => {
  const { broker, redis, keys, enqueue, startWorker, visit, known, expire, wait, startPool } = await stage()
  const ids = await Promise.all(Array.from({ length: 50 }, () => enqueue(short)))
  const { bytes } = await broker.totals('rig')
  let started = 0
  const worker = await startWorker(
    async () => {
      started++
      if (started > 20) return never()
      if (started % 10 === 0) throw new UnrecoverableError('no')
      return { n: 1 }
    },
    { concurrency: 5 },
  )
  await eventually(async () => (await redis.llen(keys.active)) === 5 && started === 25)
  expect(await visit()).toEqual([['found', 'rig', expect.stringMatching(OLD)]])
  // The check for lost tasks marks them first. Nothing is reported twice.
  expect(await visit(2)).toEqual([])
  const held = await redis.lrange(keys.active, 0, -1)
  expect(await known()).toMatchObject({
    workers: [expect.stringMatching(OLD)],
    tasks: 5,
    ids: expect.arrayContaining(held),
  })
  expect(await broker.counts('rig')).toMatchObject({ completed: 18, dead: 2, active: 5, waiting: 25 })

  await worker.close(true)
  await expire()
  expect(await visit(2)).toEqual([])
  wait(10_000)
  expect(await visit()).toEqual([['gone', 'rig', 5, expect.stringMatching(OLD)]])
  expect(await known()).toBeUndefined()
  expect(await visit()).toEqual([])
  expect(await broker.counts('rig')).toMatchObject({ completed: 18, dead: 2, active: 0, waiting: 30 })
  expect(await broker.totals('rig')).toMatchObject({ accepted: 50, removed: 0, recovered: 5, unaccounted: 0 })
  // Its ends have refunded nothing.
  expect((await broker.totals('rig')).bytes).toBe((bytes / 50) * 30)

  await startPool()
  await eventually(async () => (await broker.counts('rig')).completed === 48)
  const listed = await Promise.all(
    (['completed', 'dead'] as const).map((each) =>
      broker.list({ queue: 'rig', status: each, limit: 100, cursor: undefined }),
    ),
  )
  expect(listed.flatMap(({ tasks }) => tasks.map(({ id }) => id)).toSorted()).toEqual(ids.toSorted())
  expect(await broker.totals('rig')).toMatchObject({ accepted: 50, removed: 0, ended: 50, unaccounted: 0, bytes: 0 })
})

describe('nothing is reported', () => {
  it('of pools, attached Workers, Queues that only add, and QueueEvents, however long they hold tasks', async () => {
    const running = Promise.withResolvers<void>()
    const { redis, redisUrl, keys, base, enqueue, startPool, startWorker, visit, known } = await stage({
      concurrency: 1,
      handle: async ({ input }) => running.promise.then(() => input),
    })
    onTestFinished(() => running.resolve())
    const queue = new Queue('rig', base)
    const events = new QueueEvents('rig', { ...base, connection: { url: redisUrl } })
    onTestFinished(() => Promise.all([queue.close(), events.close()]).then(() => {}))
    await events.waitUntilReady()
    await startPool()
    await enqueue(short)
    await eventually(async () => (await redis.llen(keys.active)) === 1)
    // Its locks are renewed so rarely that each check finds them marked.
    await startWorker(() => running.promise, { attached: true, stalledInterval: 1_000 })
    await queue.add('x', {})
    await eventually(async () => (await redis.llen(keys.active)) === 2)
    await eventually(async () => (await redis.exists(keys.attachedCheck)) === 1)
    expect(await visit(4)).toEqual([])
    expect(await redis.smembers(keys.unrenewed)).not.toEqual([])
    expect(await known()).toBeUndefined()
  })

  it('of a Worker that takes single jobs with tokens of its own, if it is attached', async () => {
    const { redis, keys, enqueue, startWorker, visit } = await stage()
    const worker = await startWorker(never, { attached: true, autorun: false })
    await enqueue(short)
    expect(await worker.getNextJob('my-token', { block: false })).toBeDefined()
    expect(await visit(3)).toEqual([])
    expect(await redis.llen(keys.active)).toBe(1)
  })
})

it('a Worker without a check for lost jobs is noticed by the locks of its tasks', async () => {
  const { redis, keys, enqueue, startWorker, visit, known } = await stage()
  const id = await enqueue(short)
  await startWorker(never, { skipStalledCheck: true })
  await eventually(async () => (await redis.llen(keys.active)) === 1)
  expect(await visit(2)).toEqual([['found', 'rig', expect.stringMatching(OLD)]])
  expect(await known()).toMatchObject({ tasks: 1, ids: [id] })
})

it('the next leader repeats no report, and a Worker that joins is reported, but not one that has reconnected', async () => {
  const { redis, keys, leader, visit, startWorker, wait } = await stage()
  await startWorker(never)
  await eventually(() => redis.exists(keys.stalledCheck).then(Boolean))
  expect(await visit()).toHaveLength(1)
  const next = leader()
  expect(await next()).toEqual([])
  await redis.set(
    keys.unattached,
    ((await redis.get(keys.unattached)) ?? '').replace(/(old at 127\.0\.0\.1):\d+/, '$1:1'),
  )
  wait(5_000)
  expect(await next()).toEqual([])
  await startWorker(never, { name: 'older' })
  wait(5_000)
  expect((await next()).map(([found, queue, ...workers]) => [found, queue, workers.length])).toEqual([
    ['found', 'rig', 2],
  ])
})

it('workers of the fleet are not among the reported ones', async () => {
  const { redisUrl, namespace, redis, keys, startWorker, visit } = await stage()
  const fleet = openPatientFleet({ redisUrl, namespace, queues: ['cpu'], log: silent })
  onTestFinished(() => fleet.close())
  await eventually(() => fleet.commands(1).then(() => true))
  await fleet.heartbeat(status('host:1'))
  await startWorker(never, { name: 'host:1', skipStalledCheck: true })
  await startWorker(never)
  await eventually(() => redis.exists(keys.stalledCheck).then(Boolean))
  expect(await visit()).toEqual([['found', 'rig', expect.stringMatching(OLD)]])
})

it('if Redis does not permit CLIENT LIST, a Worker is reported by the name that is stored with its tasks', async () => {
  const server = await privateRedis()
  await server.start()
  const admin = new Redis(server.url)
  onTestFinished(() => admin.disconnect())
  await admin.acl('SETUSER', 'leader', 'on', '>secret', '~*', '&*', '+@all', '-client|list')
  const { redis, keys, enqueue, startWorker, visit } = await stage({
    redisUrl: server.url.replace('redis://', 'redis://leader:secret@'),
  })
  await enqueue(short)
  await startWorker(never, { skipStalledCheck: true })
  await eventually(async () => (await redis.llen(keys.active)) === 1)
  expect(await visit(2)).toEqual([['found', 'rig', 'old']])
})

it('counts are compared once a minute while such a Worker stays, and at once when it has gone', async () => {
  const { broker, redis, keys, enqueue, startWorker, visit, expire, wait } = await stage()
  await Promise.all([enqueue(short), enqueue(short, { delayMs: 60_000 })])
  const { bytes } = await broker.totals('rig')
  const worker = await startWorker(async () => ({ n: 1 }))
  await eventually(async () => (await redis.zcard(keys.completed)) === 1)
  await visit()
  expect((await broker.totals('rig')).bytes).toBe(bytes)
  wait(60_000)
  await visit()
  expect((await broker.totals('rig')).bytes).toBe(bytes / 2)

  await enqueue(short)
  await eventually(async () => (await redis.zcard(keys.completed)) === 2)
  await worker.close(true)
  await expire()
  await visit()
  expect((await broker.totals('rig')).bytes).toBe(bytes)
  wait(10_000)
  expect(await visit()).toHaveLength(1)
  expect((await broker.totals('rig')).bytes).toBe(bytes / 2)
})

it.each([
  ['begun', undefined, true],
  ['continued', 1_000, true],
  ['none', 1_001, false],
  ['ended', 1_000, false],
  ['none', undefined, false],
] as const)('a change is %s if one was seen at %s and a trace is found: %s', (change, seenAt, isSeen) => {
  expect(changeOf(seenAt === undefined ? undefined : { seenAt }, isSeen, 11_000)).toBe(change)
})
