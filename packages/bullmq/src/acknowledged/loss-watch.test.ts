// Redis goes back in time while producers are connected: by a failover to a replica that lagged behind, a restart without the newest
// writes, and FLUSHALL. The tests count what is reported, and also what looks like a loss but is none.
import { randomBytes, randomUUID } from 'node:crypto'
import type { Log, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { privateCluster, privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { silent } from '../setup.fixture.ts'
import { openLossWatch } from './loss-watch.ts'

const LINE = 'redis has lost acknowledged tasks: its data is older than before'

interface Line {
  readonly tasks: number
  readonly queues: Readonly<Record<string, number>>
  readonly overMs: number
  readonly ids: readonly string[]
}

/** Opens a producer that reports what is lost. */
async function producer(redisUrl: string, namespace: string, more: { readonly registerEveryMs?: number } = {}) {
  const lines: Line[] = []
  const lost: { readonly queue: string; readonly tasks: number }[] = []
  const log: Log = {
    ...silent,
    error: (line: unknown, message?: string) => void (message === LINE && lines.push(line as Line)),
  }
  const broker = openPatientBroker({
    ...{ redisUrl, namespace, queues: ['mail', 'files'], sizeLimit: 10_000, leads: false, log, ...more },
    onLost: (each) => lost.push(each),
  })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  return {
    broker,
    lines,
    lost,
    async enqueue(queue: string, own: Partial<NewTask> = {}): Promise<TaskId> {
      const id = createTaskId(queue, Date.now(), randomBytes(10))
      const task = {
        id,
        task: 'a.b',
        queue,
        version: 1,
        input: {},
        enqueuedAt: Date.now(),
        maxAttempts: 1,
        priority: 0,
        ...own,
      }
      return (await broker.enqueue(task as NewTask)).id
    },
  }
}

const namespaced = () => `t-${randomUUID().slice(0, 12)}`

async function server() {
  const redis = await privateRedis()
  await redis.start()
  const client = new Redis(redis.url)
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return { ...redis, client }
}

/** Returns a position in the stream of a primary's writes. */
const offset = (info: string, field: string): number => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1])

/** A primary behind a proxy, and a replica that `detach` cuts off as it is now, and to which `fail` then moves the proxy. */
async function replicated() {
  const [primary, replica] = [await server(), await server()]
  const { port } = new URL(primary.url)
  await primary.client.config('SET', 'repl-diskless-sync-delay', '0')
  await replica.client.replicaof('127.0.0.1', port)
  const isSynced = async () => (await replica.client.info('replication')).includes('master_link_status:up')
  await eventually(isSynced)
  const proxy = await faultProxy(primary.url)
  onTestFinished(() => proxy.close())
  return {
    proxy,
    primary,
    replica,
    async detach() {
      // WAIT would wait for what this connection has written.
      const written = offset(await primary.client.info('replication'), 'master_repl_offset')
      await eventually(async () => offset(await replica.client.info('replication'), 'slave_repl_offset') >= written)
      await replica.client.call('REPLICAOF', 'NO', 'ONE')
    },
    async fail() {
      proxy.moveTo(replica.url)
      await primary.crash()
      proxy.reset()
    },
  }
}

/** Resolves when a producer of this namespace has looked for lost tasks, because it registers its queues afterwards. */
const looked = async (redis: Redis, namespace: string) => {
  const registry = `{${namespace}}:leader:registry`
  await redis.del(registry)
  await eventually(() => redis.exists(registry).then((count) => count === 1))
}

describe('a failover to a replica that lagged behind', () => {
  it('is reported by each process that had acknowledged lost tasks, and exactly one process reports each task', async () => {
    const { proxy, detach, fail } = await replicated()
    const namespace = namespaced()
    const [one, two, idle] = [
      await producer(proxy.url, namespace),
      await producer(proxy.url, namespace),
      await producer(proxy.url, namespace),
    ]
    await Promise.all([one.enqueue('mail'), two.enqueue('files'), idle.enqueue('files')])
    await detach()
    const idempotency = { key: 'k'.repeat(22), request: 'r'.repeat(11), life: 60 }
    const shared = await one.enqueue('mail', { idempotency })
    expect(await two.enqueue('mail', { idempotency })).toBe(shared)
    const lost = {
      mail: [await one.enqueue('mail'), await one.enqueue('mail'), await two.enqueue('mail')],
      files: [await two.enqueue('files', { delayMs: 60_000 })],
    }
    await fail()
    const ids = [shared, ...lost.mail, ...lost.files]
    await eventually(() => one.lines.length + two.lines.length === 2)
    const lines = [...one.lines, ...two.lines]
    expect(lines.flatMap((line) => line.ids).toSorted()).toEqual(ids.toSorted())
    expect(lines.map((line) => line.tasks)).toEqual(lines.map((line) => line.ids.length))
    expect(one.lines[0]?.ids).toEqual(expect.arrayContaining(lost.mail.slice(0, 2)))
    expect(two.lines[0]?.ids).toEqual(expect.arrayContaining(lost.files))
    const counted = [...one.lost, ...two.lost]
    const sum = (queue: string) =>
      counted.filter((each) => each.queue === queue).reduce((all, { tasks }) => all + tasks, 0)
    expect({ mail: sum('mail'), files: sum('files') }).toEqual({ mail: 4, files: 1 })
    expect(idle.lines).toEqual([])
    expect(await one.broker.lostTasks('mail')).toMatchObject({ tasks: 4 })
    expect(await one.broker.lostTasks('files')).toMatchObject({ tasks: 1, newestId: lost.files[0] })
  })

  it('is not reported if no acknowledged task is lost', async () => {
    const { proxy, detach, fail, replica } = await replicated()
    const namespace = namespaced()
    const own = await producer(proxy.url, namespace)
    await own.enqueue('mail')
    await detach()
    await fail()
    await looked(replica.client, namespace)
    expect(own.lines).toEqual([])
    expect(await own.broker.lostTasks('mail')).toBeUndefined()
  })

  it('does not count tasks that were deleted, replaced or obliterated', async () => {
    const { proxy, detach, fail } = await replicated()
    const namespace = namespaced()
    const own = await producer(proxy.url, namespace)
    const [mail, files] = own.broker.boardQueues
    const removed = await own.enqueue('mail', { caller: { token: 'abc' } })
    await mail?.remove(removed)
    const unique = { key: 'u', until: 'finished', onConflict: 'replace', maxDelayMs: undefined } as const
    await own.enqueue('mail', { unique })
    await own.enqueue('mail', { unique })
    await own.enqueue('files')
    await files?.pause()
    await files?.obliterate({ force: true })
    await detach()
    const lost = await own.enqueue('mail')
    await fail()
    await eventually(() => own.lines.length === 1)
    expect(own.lines).toEqual([expect.objectContaining({ tasks: 1, ids: [lost] })])
  })
})

describe('a loss of tasks of two queues is reported in one line', () => {
  // The first look takes the steps 0 to 2. The next two looks, which begin at the same time, take the steps that follow.
  const moments = Array.from({ length: 6 }, (_, i) => 3 + i)

  it.each(moments)('if it occurs at step %d of the looks', async (lostAt) => {
    const { check, lines, lost } = await watched({ lostAt })
    await check()
    await Promise.all([check(), check()])
    await check()
    expect(lines).toEqual([expect.objectContaining({ tasks: 2, queues: { mail: 1, files: 1 } })])
    expect(lost).toEqual([
      { queue: 'mail', tasks: 1 },
      { queue: 'files', tasks: 1 },
    ])
  })

  it.each(moments)('if it occurs at step %d, and the look fails afterwards', async (lostAt) => {
    const { check, lines } = await watched({ lostAt, failsAt: lostAt + 1 })
    await check()
    await Promise.allSettled([check(), check()])
    await check().catch(() => {})
    await check()
    expect(lines).toEqual([expect.objectContaining({ tasks: 2, queues: { mail: 1, files: 1 } })])
  })
})

/** Two queues with one task each, which Redis loses at a step: a look takes one step before each queue, and one at its end. */
async function watched({ lostAt, failsAt }: { readonly lostAt: number; readonly failsAt?: number }) {
  const redis = new Redis(inject('redisUrl'))
  const namespace = namespaced()
  const tasks = await Promise.all(
    ['mail', 'files'].map(async (queue) => {
      const keys = queueKeys(namespace, queue)
      const id = createTaskId(queue, Date.now(), randomBytes(10))
      await redis.multi().hset(keys.totals, 'accepted', 1).hset(keys.job(id), 'name', 'a.b').exec()
      return { queue, id, stored: [keys.totals, keys.job(id)] }
    }),
  )
  let step = 0
  const next = (): void => {
    // The connection sends this deletion before the commands of the next step.
    if (step === lostAt) void redis.del(tasks.flatMap(({ stored }) => stored))
    if (step++ === failsAt) throw new Error('Connection is closed.')
  }
  function* byQueue() {
    for (const { queue, id } of tasks) {
      next()
      yield [queue, [id]] as const
    }
    next()
  }
  const lines: unknown[] = []
  const lost: { readonly queue: string; readonly tasks: number }[] = []
  const watch = openLossWatch({
    redis,
    ...{ redisUrl: inject('redisUrl'), namespace },
    acknowledged: { note() {}, byQueue: () => Object.assign(new Map(), { [Symbol.iterator]: byQueue }) },
    onLost: (each) => lost.push(each),
    log: { ...silent, error: (line) => void lines.push(line), warn: (line) => void lines.push(line) },
  })
  onTestFinished(async () => {
    watch.close()
    await redis.del(tasks.map(({ queue }) => queueKeys(namespace, queue).lostTasks))
    redis.disconnect()
  })
  return { check: watch.check, lines, lost }
}

it('a restart without the newest writes is reported', async () => {
  const { client, url, crash, start } = await server()
  const own = await producer(url, namespaced())
  await own.enqueue('mail')
  await client.config('SET', 'appendonly', 'no')
  const lost = [await own.enqueue('mail'), await own.enqueue('mail')]
  await crash()
  await start()
  await eventually(() => own.lines.length > 0)
  expect(own.lines).toEqual([expect.objectContaining({ tasks: 2, ids: lost.toSorted() })])
})

it('a restart of a node of a cluster without the newest writes is reported', async () => {
  const cluster = await privateCluster()
  onTestFinished(() => cluster.end())
  const namespace = namespaced()
  const own = await producer(cluster.url, namespace)
  await own.enqueue('mail')
  const node = await cluster.nodeOf(prefixOf(namespace, 'mail'))
  await node.ask('CONFIG', 'SET', 'appendonly', 'no')
  const lost = await own.enqueue('mail')
  await node.crash()
  await node.start()
  await eventually(() => own.lines.length > 0, 60_000)
  expect(own.lines).toEqual([expect.objectContaining({ tasks: 1, ids: [lost] })])
})

it('FLUSHALL is reported although the connections stay open', async () => {
  const { client, url } = await server()
  const namespace = namespaced()
  const own = await producer(url, namespace, { registerEveryMs: 100 })
  const ids = [await own.enqueue('mail'), await own.enqueue('files')]
  // A look that has begun before may not know the tasks.
  for (let i = 0; i < 2; i++) await looked(client, namespace)
  await client.flushall()
  await eventually(() => own.lines.length > 0)
  expect(own.lines).toEqual([expect.objectContaining({ tasks: 2, ids: expect.arrayContaining(ids) })])
})

it('a lost connection to the same server is not reported, whatever was deleted', async () => {
  const { client, url } = await server()
  const namespace = namespaced()
  const own = await producer(url, namespace, { registerEveryMs: 100 })
  await looked(client, namespace)
  const id = await own.enqueue('mail')
  // Nothing shows that the task was deleted.
  await client.del(`${prefixOf(namespace, 'mail')}:mail:${id}`)
  await client.xtrim(`${prefixOf(namespace, 'mail')}:mail:events`, 'MAXLEN', 0)
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await looked(client, namespace)
  expect(own.lines).toEqual([])
})
