// Every kind of work on a real Redis writes only keys that the table of keys describes, and each row of the table describes a key
// that is written. A key that should always expire has a time to live at every moment.
import { randomBytes } from 'node:crypto'
import { defineCatalogue, defineSchedule, followUp, TaskError, type TaskId } from '@bullpen/contract'
import { createGroupId, createRunId, createTaskId, DEFAULT_BREAKER } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { MAX_PASSED_BYTES, newGroup, newTask, planFollowUps, type RunSettings } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { FlowProducer, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest'
import { defineBreakers } from '../breakers/stored-breaker.ts'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { eventSender } from '../events/event-sender.ts'
import { openPatientFleet, pool as poolStatus, status } from '../fleet/fleet.fixture.ts'
import { capacitySetting, keyLimitSettings } from '../internals/turns/key-limits.ts'
import { setLimits } from '../internals/turns/set-limits.fixture.ts'
import { fleetKeys, prefixOf, queueKeys, runChannels, runKeys } from '../keys.ts'
import { openQueues } from '../outbox/outbox.fixture.ts'
import { runnerOn, runScript } from '../scripts/script.ts'
import { long, setup, short, silent } from '../setup.fixture.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { endRunTasksScript, noteLostScript, throttleKeyScript } from '../store/scripts.ts'
import { GROUP_KEYS, NAMESPACE_KEYS, QUEUE_KEYS, RUN_KEYS } from './key-table.ts'
import { patternOf, suspectOf } from './stored-key.ts'

/** The kinds of keys that the tests have seen. */
const seen = new Set<string>()

/** Ends a test that hangs, in ms. A busy machine may take minutes for what a test waits for. */
const SEEN_WITHIN_MS = 240_000

/** Kinds that no test can see. */
const UNSEEN: readonly string[] = [
  // BullMQ does not write this list any more.
  'paused',
  // Only a Worker without Bullpen's backend has these.
  '<task>:lock',
  // Only a cluster has this set (orphan-search-cluster.test.ts).
  'producers',
]

/** Returns every key of a namespace with its type and its time to live in ms, all at the same moment. */
const SNAPSHOT = `
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  found[#found + 1] = { key, redis.call('TYPE', key).ok, redis.call('PTTL', key) }
end
return found`

const TYPES: Readonly<Record<string, string>> = { zset: 'sorted set' }

/** The kind of a key, such as "group meta" or, for the key of a queue, "wait". Undefined if no row describes the key. */
function kindOf(namespace: string, key: string): string | undefined {
  const { kind, queue } = suspectOf(namespace, key)?.about ?? {}
  if (kind === undefined || queue !== undefined) return kind
  const owner = key.startsWith(`{${namespace}:run-`) ? 'run' : key.startsWith(`{${namespace}:`) ? 'group' : 'namespace'
  return `${owner} ${kind}`
}

/**
 * Looks at all keys of a namespace, again and again, until the test ends. Returns a function that waits for a kind of key. It also
 * knows the keys that exist for too short a time to be looked at, because Redis reports every key that is written.
 */
async function observe(
  redisUrl: string,
  namespace: string,
): Promise<{ readonly has: (...kinds: readonly string[]) => Promise<unknown> }> {
  const redis = new Redis(redisUrl)
  const written = redis.duplicate()
  const found = new Set<string>()
  const wrong = new Set<string>()
  let isOver = false
  const note = (kind: string): void => {
    found.add(kind)
    seen.add(kind)
  }
  written.on('pmessage', (_pattern: string, channel: string) => {
    const kind = kindOf(namespace, channel.slice(channel.indexOf(':') + 1))
    if (kind !== undefined) note(kind)
  })
  await written.psubscribe(`__keyspace@*__:${patternOf(namespace)}`)
  const looking = (async () => {
    while (!isOver) {
      for (const [key, type, ttl] of (await redis.eval(SNAPSHOT, 0, patternOf(namespace))) as [
        string,
        string,
        number,
      ][]) {
        const suspect = suspectOf(namespace, key)
        const kind = kindOf(namespace, key)
        if (suspect === undefined || kind === undefined) {
          wrong.add(`${key} is in no row`)
          continue
        }
        note(kind)
        const { subject } = suspect
        if ((TYPES[type] ?? type) !== subject.type) wrong.add(`${key} is a ${type}`)
        if (subject.expires && ttl < 0) wrong.add(`${key} does not expire`)
      }
    }
  })()
  onTestFinished(async () => {
    isOver = true
    await looking
    written.disconnect()
    redis.disconnect()
    expect([...wrong]).toEqual([])
  })
  return { has: (...kinds) => eventually(() => kinds.every((kind) => found.has(kind)), SEEN_WITHIN_MS) }
}

/** Lets Redis report every key that is written (K) by a command of any kind (A). */
const REPORTED = 'KA'

const NOTIFY = 'notify-keyspace-events'

let reportedBefore = ''

async function withRedis(use: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(inject('redisUrl'))
  await use(redis)
  redis.disconnect()
}

beforeAll(() =>
  withRedis(async (redis) => {
    const [, before = ''] = (await redis.config('GET', NOTIFY)) as string[]
    reportedBefore = before
    await redis.config('SET', NOTIFY, REPORTED)
  }),
)

const catalogue = defineCatalogue(short, long)

const BROKEN = -1
const FLAKY = -2
const GATED = -3

/** `roundMs` is how often the leader looks at the queue, which ends what only lasts until then. */
async function stage({ roundMs = 50 } = {}) {
  const gate = Promise.withResolvers<void>()
  const rig = await setup({
    roundMs,
    watchSchedulesEveryMs: 50,
    retention: { completed: { count: 20 } },
    async handle({ input, signal }) {
      if (input.n === BROKEN) throw new TaskError('broken', 'broken', { retryable: false })
      if (input.n === FLAKY) throw new TaskError('flaky', 'flaky')
      if (input.n === GATED) {
        // Does not obey its signal.
        void signal
        await gate.promise
      }
      return input
    },
  })
  onTestFinished(() => gate.resolve())
  const redis = new Redis(rig.redisUrl, { maxRetriesPerRequest: null })
  onTestFinished(() => redis.disconnect())
  const { has } = await observe(rig.redisUrl, rig.namespace)
  const [queue = expect.fail()] = rig.broker.boardQueues
  return { ...rig, redis, has, queue, keys: queueKeys(rig.namespace, 'rig'), gate }
}

it('tasks in every status', async () => {
  const { enqueue, broker, startPool, settled, has, gate, redis, keys } = await stage()
  await enqueue(short, { priority: 3 })
  await enqueue(short, { delayMs: 3_600_000 })
  const expired = await enqueue(short, { expiresAt: Date.now() + 60_000, delayMs: 60_000 })
  await enqueue(short, { expiresAt: Date.now() - 1 })
  const cancelled = await enqueue(short)
  await broker.cancel(cancelled, { stoppable: true })
  await has('<task>', 'wait', 'prioritized', 'pc', 'delayed', 'scheduled', 'expiries', 'expired', 'failed')
  await has(
    'cancelled',
    'cancel-reply:<request>',
    'end-reply:<process>',
    'events',
    'meta',
    'marker',
    'totals',
    'leader',
  )
  await startPool()
  const done = await enqueue(long)
  const dead = await enqueue(short, { input: { n: BROKEN } })
  await Promise.all([done, dead].map(settled))
  await has('completed', 'dead', 'fingerprints', 'fingerprint:<fingerprint>', 'new-fingerprints')
  const running = await enqueue(long, { input: { n: GATED } })
  await has('active', 'unrenewed')
  await eventually(async () => (await broker.find(running))?.status === 'active')
  await broker.cancel(running, { stoppable: true })
  await eventSender(redis, keys)([])
  await has('cancelling', 'task-events', 'event-batch:<process>')
  gate.resolve()
  await settled(running)
  expect(await broker.find(expired)).toBeDefined()
})

it('tasks that take turns', async () => {
  const { enqueue, has } = await stage()
  const turn = { key: 'tenant: 1', weight: 1 }
  await enqueue(short, { turn })
  await enqueue(short, { turn, priority: 3 })
  await has('lane:<lane>', 'lane-priorities:<lane>', 'lanes', 'turns', 'turn-state')
})

it('tasks of a concurrency key that is limited', async () => {
  const { enqueue, startPool, has, redis, keys, gate } = await stage()
  await setLimits(redis, keys, keyLimitSettings({ concurrency: 1 }))
  const slow = { max: 1, perMs: 3_600_000, burst: 1 }
  await setLimits(redis, keys, keyLimitSettings({ rate: slow }, 'slow'))
  for (let i = 0; i < 6; i++) {
    await enqueue(long, { turn: { key: i % 2 === 0 ? 'slow' : 'tenant: 1', weight: 1 }, input: { n: GATED } })
  }
  await startPool()
  const [id = ''] = await eventually(async () => {
    const active = await redis.lrange(keys.active, 0, 0)
    return active.length > 0 && active
  })
  await runScript(redis, throttleKeyScript, { job: keys.job(id) }, { base: keys.base, duration: 60_000 })
  await has('key-limits', 'active-by-key', 'blocked-lanes', 'lane-times', 'key-rate:<concurrency key>', 'key-throttles')
  gate.resolve()
})

it('tasks that wait for a limiter', async () => {
  const { enqueue, startPool, has, redis, keys, gate } = await stage()
  await setLimits(redis, keys, capacitySetting('permits:db', 1))
  const needs = [{ limiter: 'permits:db', amount: 1 }]
  for (let i = 0; i < 3; i++) await enqueue(long, { needs, input: { n: GATED } })
  await startPool()
  await has('capacities', 'in-use', 'need-waiters:<need>', 'waited-needs', 'key-passes')
  await defineBreakers(runnerOn(redis), keys, { smtp: DEFAULT_BREAKER }, { replaces: true })
  await has('breakers')
  gate.resolve()
})

it('retries that their budget holds, and a request for dead tasks', async () => {
  const { enqueue, broker, startPool, has } = await stage()
  for (let i = 0; i < 120; i++) await enqueue(short, { input: { n: FLAKY } })
  await startPool()
  await has('retrying', 'retry-budget:<definition>', 'held-retries:<definition>')
  const change = { action: 'delete' as const, rate: 1, by: 'ann', counted: { matching: 0, exact: true } }
  await enqueue(short, { input: { n: BROKEN } })
  await has('dead')
  await broker.changeDead({ ...change, filter: { queue: 'rig' } })
  await has('dead-requests', 'dead-progress:<request>', 'dead-request-ids')
})

it('follow-up tasks', async () => {
  const { enqueue, broker, has, redis, keys } = await stage()
  const followUps = planFollowUps({ onEnd: [followUp(short, {})] }, { catalogue, correlationId: undefined })
  await broker.cancel(await enqueue(short, { followUps }), { stoppable: true })
  // An entry that cannot be read stays.
  await redis.xadd(keys.outbox, '*', 'e', 'w')
  await has('outbox', 'forwarded:<quarter day>:<digest>')
})

it('unique keys, idempotency keys and the limits of API keys', async () => {
  const { enqueue, namespace, redisUrl, has, redis } = await stage()
  const unique = { key: 'k', until: 'finished', onConflict: 'replace', maxDelayMs: undefined } as const
  await enqueue(short, { unique })
  await enqueue(short, { unique })
  const limits = { perApiKey: { enqueueRate: { max: 100, perMs: 60_000 }, maxUnfinishedTasks: 10 } }
  await enqueue(short, { apiKeyName: 'shop', limits: limits as NewTask['limits'] })
  await has('unique-keys', 'recently-removed', 'api-key-tasks', 'api-key-rates')
  const other = openPatientBroker({
    ...{ redisUrl, namespace, queues: ['rig'], sizeLimit: 10_000, log: silent, leads: false },
    enqueueRateOf: () => ({ max: 100, perMs: 60_000 }),
  })
  await eventually(() => other.ping().then(() => true))
  await other.rates.take('shop', 1)
  const idempotency = { key: 'a'.repeat(22), request: 'b'.repeat(11), life: 60 }
  const id = createTaskId('rig', Date.now(), randomBytes(10))
  await other.enqueue({ ...plainTask(id), idempotency })
  await other.close()
  await has('idempotency:<life>:<bucket>:<period>', 'idempotency-counts', 'namespace enqueue-rate:<api key>')
  await has('namespace schema', 'namespace producers', 'namespace leader:lease', 'namespace leader:fencing')
  await has('namespace leader:registry')
  expect(await redis.exists(queueKeys(namespace, 'rig').job(id))).toBe(1)
})

it('a task that must be replicated', async () => {
  const { enqueue, has } = await stage()
  await expect(enqueue(short, { durability: 'replicated' })).rejects.toThrow('no replica')
  await has('replicated')
})

it('an acknowledged task that Redis has lost', async () => {
  const { enqueue, namespace, redis, has } = await stage()
  await enqueue(short)
  const { base, totals, recentlyRemoved, events, lostTasks } = queueKeys(namespace, 'rig')
  const lost = createTaskId('rig', Date.now(), randomBytes(10))
  await runScript(
    redis,
    noteLostScript,
    { totals, recentlyRemoved, events, lostTasks },
    { base, process: 'p', keptMs: 60_000 },
    [lost],
  )
  await has('lost-tasks')
})

function plainTask(id: TaskId): NewTask {
  return newTask(short, {}, {}, { id, enqueuedAt: Date.now(), correlationId: undefined })
}

it('a cancel by filter while its task runs and returns to its queue', async () => {
  // The leader's next pass deletes `cancel-returned`, which must be seen before.
  const { enqueue, broker, startPool, has, drain, gate } = await stage({ roundMs: 500 })
  await startPool()
  await startPool()
  await enqueue(short, { input: { n: GATED } })
  await has('active', 'cancel-consumers')
  await broker.cancelMany({ queue: 'rig', task: 'rig.short', before: Date.now() + 60_000, reason: 'queue_shutdown' })
  await has('cancel-rules', 'cancel-progress:<rule>', 'cancel-known:<rule>', 'cancel-pass')
  void drain(0, 0)
  await has('cancel-returned')
  gate.resolve()
})

it('quarantined tasks without a place', async () => {
  const { enqueue, startPool, has, redis, keys, gate } = await stage()
  for (let i = 0; i < 3; i++) {
    const id = await enqueue(long, { input: { n: GATED } })
    await redis.hset(keys.job(id), { stc: 2, deaths: 2 })
  }
  await startPool()
  await has('postponed')
  gate.resolve()
})

it('follow-up tasks in another queue', async () => {
  const { redisUrl, namespace, release, forwarder } = await openQueues()
  const { has } = await observe(redisUrl, namespace)
  await release(2)
  await has('outbox')
  await forwarder().forwardLeft()
  await has('forwarded:<quarter day>:<digest>')
})

it('a group with members in two queues', async () => {
  const { namespace, redisUrl, has } = await stage()
  const queues = ['rig', 'other']
  const broker = openPatientBroker({ redisUrl, namespace, queues, sizeLimit: 10_000, log: silent, leads: false })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  const id = createGroupId(Date.now(), randomBytes(10))
  await broker.groups.create(newGroup(id, {}, 'ann'))
  const { delayMs: _, ...first } = plainTask(createTaskId('rig', Date.now(), randomBytes(10)))
  const tasks = [first, { ...first, queue: 'other' }].map((task) => ({ ...task, delayMs: 3_600_000 }))
  await broker.groups.add(id, { key: 'k', digest: 'd', tasks, seal: false })
  await has('namespace groups', 'group meta', 'group members', 'group queues', 'group requests', 'group outbox')
  await broker.groups.cancel(id, 'ann')
  await has('cancelled-group:<group>')
  expect(await broker.groups.waitUntilEnded(id, AbortSignal.timeout(120_000))).toMatchObject({ state: 'ended' })
})

it('the run of a pipeline', async () => {
  const { namespace, redisUrl, redis, has } = await stage()
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['rig'],
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  const id = createRunId(Date.now(), randomBytes(10))
  const task = { ...plainTask(createTaskId('rig', Date.now(), randomBytes(10))), delayMs: undefined }
  const settings: RunSettings = {
    ...{ id, incarnation: 'one' },
    ...{ pipeline: 'p', by: 'ann', onError: 'collect', maxErrors: 5, ordered: true, take: undefined },
    ...{ totalMs: 60_000, keepMs: 60_000, source: { task: task.task, queue: 'rig' } },
    stages: [{ task: task.task, queue: 'rig', concurrency: 3, buffer: 2 }],
    reduce: { task: 'sort', queue: 'rig', maxBytes: 1_000 },
  }
  await broker.runs.start({ settings, tasks: [task, task, task] })
  const values = [JSON.stringify('x'.repeat(MAX_PASSED_BYTES)), '1', '2', '3', '4']
  const emission = { segment: 1, fencingToken: 1, from: 0, values, count: 5, digest: '', cursor: '', isLast: true }
  await broker.runs.emit(settings, emission)
  await has('run meta', 'run definition', 'run tasks', 'run inputs', 'run waiting:<stage>')
  const args = { id, channels: runChannels(namespace), incarnation: 'one' }
  const ends = [1, 0, 'c', '0', 1, 2, 'c', '2', 1, 1, 'd', '']
  // Delivered by nobody, so that the outbox stays.
  await runScript(redis, endRunTasksScript, runKeys(namespace, id), args, ends.slice(0, 8))
  await has('run early', 'run results', 'run outbox')
  await runScript(redis, endRunTasksScript, runKeys(namespace, id), args, ends.slice(8))
  await has('run errors')
})

it('schedules', async () => {
  const { broker, has, startPool } = await stage()
  await startPool()
  const schedule = { name: 'nightly', task: short, input: { n: BROKEN }, cron: '0 0 1 1 *' } as const
  await broker.schedules.put(defineSchedule(schedule), { source: 'api', by: 'ann' })
  await broker.schedules.run('nightly')
  await broker.schedules.declare([defineSchedule({ ...schedule, name: 'declared' })], { by: 'catalogue' })
  await has('schedules', 'schedule-times', 'schedule-troubles', 'namespace schedule-editions')
})

it('workers and commands', async () => {
  const { redisUrl, namespace, redis, has } = await stage()
  const fleet = openPatientFleet({ redisUrl, namespace, queues: ['rig'], log: silent })
  onTestFinished(() => fleet.close())
  await eventually(() => fleet.commands(1).then(() => true))
  await fleet.heartbeat(status('host-1', [poolStatus('rig')]))
  await has('namespace fleet:heartbeats', 'namespace fleet:worker:<worker>')
  // However late the commands are, the worker that they concern is alive.
  await redis.zadd(fleetKeys(namespace).heartbeats, Date.now() + 3_600_000, 'host-1')
  for (let i = 0; i < 20; i++)
    await fleet.send({ id: `c${i}`, spec: { action: 'limit', queue: 'rig', maxTasks: 10 + i }, by: 'ann' })
  await fleet.send({
    id: 'r',
    spec: { action: 'limit', apiKeyName: 'shop', enqueueRate: { max: 5, per: '1s' } },
    by: 'ann',
  })
  await fleet.send({ id: 'p', spec: { action: 'pause', queue: 'rig' }, by: 'ann' })
  await fleet.send({ id: 'l', spec: { action: 'log_level', level: 'debug' }, by: 'ann' })
  await has(
    'namespace fleet:log-level',
    'settings',
    'namespace fleet:commands',
    'namespace fleet:command:<command>',
    'namespace fleet:inbox:<worker>',
  )
  await has('namespace fleet:settings-revision', 'namespace fleet:enqueue-rates', 'namespace fleet:unapplied')
})

it("what a team's own BullMQ code uses", async () => {
  const { namespace, redis, has, keys, enqueue, queue } = await stage()
  const id = await enqueue(short, { delayMs: 60_000 })
  await queue.addJobLog(id, 'a line')
  const options = { connection: redis, prefix: prefixOf(namespace, 'rig') }
  const own = new Queue('rig', options, bullpenBackend())
  onTestFinished(() => own.close())
  await own.upsertJobScheduler('nightly', { every: 60_000 })
  await own.add('x', {}, { deduplication: { id: 'one' } })
  const flows = new FlowProducer(options, bullpenBackend())
  onTestFinished(() => flows.close())
  const child = (n: number, opts: object) => ({ name: 'child', queueName: 'rig', data: { n }, opts })
  await flows.add({
    ...{ name: 'parent', queueName: 'rig' },
    children: [
      child(1, {}),
      child(2, { ignoreDependencyOnFailure: true }),
      child(3, { continueParentOnFailure: true }),
    ],
  })
  await flows.add({ name: 'parent', queueName: 'rig', children: [child(4, { failParentOnFailure: true })] })
  await own.add('without an id', {}, { delay: 60_000 })
  await has(
    'id',
    '<task>:logs',
    'repeat',
    'repeat:<scheduler>',
    'de:<deduplication id>',
    '<task>:dependencies',
    'waiting-children',
  )
  await redis.hset(keys.metricsCompleted, { count: 1, prevTS: Date.now() - 120_000, prevCount: 1 })
  await redis.hset(keys.metricsFailed, { count: 1, prevTS: Date.now() - 120_000, prevCount: 1 })
  const release = Promise.withResolvers<void>()
  onTestFinished(() => release.resolve())
  const worker = new Worker(
    'rig',
    async ({ name, data }) => {
      if (name === 'x') await release.promise
      if (data.n > 1) throw new Error('broken')
    },
    { ...options, concurrency: 4, limiter: { max: 1_000, duration: 1_000 }, metrics: { maxDataPoints: 10 } },
    bullpenBackend(),
  )
  worker.on('error', () => {})
  onTestFinished(() => worker.close(true))
  await has('limiter', 'attached-check', '<task>:processed', '<task>:failed', '<task>:unsuccessful')
  await has('metrics:completed', 'metrics:completed:data', 'metrics:failed', 'metrics:failed:data')
  await own.add('x', {}, { deduplication: { id: 'one', keepLastIfActive: true } })
  await own.add('x', {}, { deduplication: { id: 'one', keepLastIfActive: true } })
  await has('dn:<deduplication id>')
  const unattached = new Worker('rig', async () => {}, options)
  unattached.on('error', () => {})
  onTestFinished(() => unattached.close(true))
  await has('stalled-check', 'unattached')
})

afterAll(async () => {
  await withRedis((redis) => redis.config('SET', NOTIFY, reportedBefore))
  const rows = [
    ...QUEUE_KEYS.map(({ pattern }) => pattern),
    ...NAMESPACE_KEYS.map(({ pattern }) => `namespace ${pattern}`),
    ...GROUP_KEYS.map(({ pattern }) => `group ${pattern}`),
    ...RUN_KEYS.map(({ pattern }) => `run ${pattern}`),
  ]
  expect(rows.filter((row) => !seen.has(row) && !UNSEEN.includes(row))).toEqual([])
})
