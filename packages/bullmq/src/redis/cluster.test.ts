// A broker, a fleet and pools on a Redis Cluster, also while its nodes are killed.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineTask, type Log, type TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { type ClusterNode, type PrivateCluster, privateCluster } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Cluster } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openBroker } from '../broker/broker.ts'
import { openSkewMonitor } from '../clock/clock-skew.ts'
import { skewConnection } from '../connection.ts'
import { examineBullmq } from '../examination/examine.ts'
import { pool as statusOfPool, status as statusOfWorker } from '../fleet/fleet.fixture.ts'
import { openFleet } from '../fleet/fleet.ts'
import { prefixOf } from '../keys.ts'
import { long, setup, silent } from '../setup.fixture.ts'
import { createConnectionWatch } from './connection-watch.ts'
import { openSubscriber } from './subscriber.ts'

const cluster = await privateCluster()
afterAll(() => cluster.end())

/** A cluster for a test that kills nodes, whose masters have a replica each. */
async function breakableCluster(): Promise<PrivateCluster> {
  const own = await privateCluster({ replicas: 1, nodeTimeout: 1_000 })
  onTestFinished(() => own.end())
  return own
}

/** On a busy machine, a failover may take several seconds. */
const LASTING_LOCKS = { lockMs: 30_000, renewalMs: 500 }
const FAILOVER_WITHIN_MS = 120_000

const QUEUES = ['one', 'two', 'three']

/** A namespace in which the queues are on three nodes. */
async function spreadNamespace(): Promise<string> {
  for (;;) {
    const namespace = `t-${randomUUID().slice(0, 12)}`
    const nodes = await Promise.all(QUEUES.map((queue) => cluster.nodeOf(prefixOf(namespace, queue))))
    if (new Set(nodes).size === QUEUES.length) return namespace
  }
}

async function openSystem() {
  const namespace = await spreadNamespace()
  const common = { redisUrl: cluster.url, namespace, log: silent }
  const seconds: number[] = []
  const watch = createConnectionWatch((each) => seconds.push(each))
  const broker = openBroker({ ...common, watch, queues: QUEUES, sizeLimit: 10_000 })
  const fleet = openFleet({ ...common, queues: QUEUES })
  const skew = openSkewMonitor(common)
  onTestFinished(async () => {
    skew.close()
    await fleet.close()
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))
  const enqueue = async (queue: string): Promise<TaskId> => {
    const task = defineTask({ name: `cluster.${queue}`, queue, input: z.object({}), output: z.unknown() })
    const id = createTaskId(queue, skew.now(), randomBytes(10))
    await broker.enqueue(newTask(task, {}, {}, { id, enqueuedAt: skew.now(), correlationId: undefined }))
    return id
  }
  return { namespace, broker, fleet, skew, enqueue, watch, seconds }
}

it('a broker without queues reaches the cluster', async () => {
  const options = { redisUrl: cluster.url, namespace: `t-${randomUUID()}`, queues: [], sizeLimit: 10_000, log: silent }
  const broker = openBroker(options)
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
})

it("a Worker without Bullpen's backend is named, whichever node has its queue", async () => {
  const { namespace, broker } = await openSystem()
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
  for (const queue of QUEUES) {
    const connection = new Cluster(nodes, { redisOptions: { maxRetriesPerRequest: null } })
    onTestFinished(() => connection.disconnect())
    const worker = new Worker(queue, async () => {}, { connection, prefix: prefixOf(namespace, queue), name: 'old' })
    worker.on('error', () => {})
    onTestFinished(() => worker.close(true))
  }
  for (const queue of QUEUES) {
    const { workers } = await eventually(async () => (await broker.head(queue)).unattached)
    expect(workers).toEqual([expect.stringMatching(/^old at 127\.0\.0\.1:\d+$/)])
  }
})

describe('the examination of plain BullMQ', () => {
  it('finds queues and their workers on every node, and those whose keys are scattered', async () => {
    const tag = randomUUID().slice(0, 8)
    const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))
    const connection = () => {
      const client = new Cluster(nodes, { redisOptions: { maxRetriesPerRequest: null } })
      onTestFinished(() => client.disconnect())
      return client
    }
    const client = connection()
    // A queue on each node. A prefix in braces is not that of a Bullpen queue, even if it contains a dot.
    const prefixes = await Promise.all(
      cluster.nodes.map(async (node) => {
        for (let n = 0; ; n++) {
          const prefix = `{${tag}.${n}}`
          if ((await cluster.nodeOf(prefix)) === node) return prefix
        }
      }),
    )
    const [served = '', ...unserved] = prefixes
    const worker = new Worker('mail', async () => {}, { connection: connection(), prefix: served })
    onTestFinished(() => worker.close())
    for (const prefix of unserved) {
      const queue = new Queue('mail', { connection: client, prefix })
      await queue.add('send', {})
      await queue.add('send', {}, { delay: 3_600_000, timestamp: Date.now() - 7_300_000 })
      await queue.close()
    }
    // The first command of a queue stores its settings. Adding a job then fails.
    const scattered = new Queue(`mail-${tag}`, { connection: client })
    await expect(scattered.add('send', {})).rejects.toThrow()
    await scattered.close()
    await client.hset(`bull:mail-${tag}:meta`, 'version', 'bullmq')

    const { queues, findings, skipped } = await eventually(async () => {
      const examination = await examineBullmq(cluster.url, { queue: 'mail' })
      return examination.queues.some(({ workers }) => workers === 1) && examination
    })
    const workers = queues.flatMap((queue) => (queue.prefix === served ? [queue.workers] : []))
    expect(workers).toEqual([1])
    const waiting = { queue: 'mail', waiting: 1, delayed: 1, workers: 0 }
    const others = queues.filter(({ prefix }) => unserved.includes(prefix))
    expect(others.toSorted((a, b) => unserved.indexOf(a.prefix) - unserved.indexOf(b.prefix))).toMatchObject(
      unserved.map((prefix) => ({ prefix, ...waiting })),
    )
    const idle = findings.filter(({ check, prefix = '' }) => check === 'no_workers' && prefixes.includes(prefix))
    const [, ...nodesOfOthers] = cluster.nodes.map(({ port }) => `127.0.0.1:${port}`)
    expect(idle.map(({ node }) => node).sort()).toEqual(nodesOfOthers.sort())
    expect(skipped).toEqual([])
    const one = await examineBullmq(cluster.url, { prefix: unserved[0], queue: 'mail' })
    expect(one.queues).toMatchObject([{ prefix: unserved[0], ...waiting }])
    const rules = 'on >secret %R~* -@all +@read +@connection -client|list +info +config|get +cluster|slots'.split(' ')
    for (const node of cluster.nodes) await node.ask('ACL', 'SETUSER', 'reader', ...rules)
    const asReader = await examineBullmq(cluster.url.replace('://', '://reader:secret@'), { queue: 'mail' })
    expect(asReader.queues.map(({ prefix }) => prefix)).toEqual(expect.arrayContaining(prefixes))
    expect(asReader.skipped).toEqual(['no_workers'])
    const found = await examineBullmq(cluster.url, { queue: `mail-${tag}` })
    expect(found.queues).toEqual([])
    expect(found.findings.filter(({ check }) => check === 'hash_tags')).toMatchObject([
      { severity: 'error', problem: expect.stringContaining(`the keys of bull:mail-${tag} are on several nodes`) },
    ])
  })

  it('of a single node is rejected, because the queues of the other nodes would be missing', async () => {
    await expect(examineBullmq(cluster.nodes[0]?.url ?? '')).rejects.toMatchObject({
      code: 'invalid_configuration',
      message: expect.stringContaining('redis+cluster://'),
    })
  })
})

describe('queues on three nodes', () => {
  it('are kept by servers of which each is described', async () => {
    const { broker } = await openSystem()
    const servers = await eventually(async () => {
      const found = await broker.servers()
      return found.length === cluster.nodes.length && found
    })
    expect(servers.map(({ node }) => node).sort()).toEqual(cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).sort())
    for (const { settings, memory, latencyMs } of servers) {
      expect(settings.get('version')).toMatchObject({ isOk: true })
      expect(memory).toMatchObject({ usedBytes: expect.any(Number) })
      expect(latencyMs).toBeGreaterThan(0)
    }
    expect(await broker.leadership()).toMatchObject({ isLed: true })
  })

  it('are served by one broker, which stores, finds, lists, counts and cancels tasks in each', async () => {
    const { broker, skew, enqueue } = await openSystem()
    await skew.measured
    expect(Math.abs(skew.skewMs() ?? Number.NaN)).toBeLessThan(60_000)
    const ids = await Promise.all(QUEUES.map(enqueue))
    for (const [i, queue] of QUEUES.entries()) {
      const id = ids[i] as TaskId
      expect(await broker.find(id)).toMatchObject({ id, status: 'waiting', queue })
      expect((await broker.list({ queue, status: 'waiting', limit: 10, cursor: undefined })).tasks).toHaveLength(1)
      expect(await broker.counts(queue)).toMatchObject({ waiting: 1, cancelled: 0 })
      expect(await broker.cancel(id, { stoppable: true })).toBe('cancelled')
      expect(await broker.counts(queue)).toMatchObject({ waiting: 0, cancelled: 1 })
    }
  })

  it("are reached through one client, whose commands are timed, and all of whose servers' writes to disk are read", async () => {
    const { broker, enqueue, watch, seconds } = await openSystem()
    expect(watch.count()).toEqual({ ready: 1, notReady: 0 })
    await Promise.all(QUEUES.map(enqueue))
    expect(seconds.length).toBeGreaterThan(0)
    expect((await broker.lastWrites()).get('snapshot')).toBe(false)
  })

  it('are controlled by one fleet, whose heartbeat returns the settings of each', async () => {
    const { fleet, enqueue } = await openSystem()
    const worker = statusOfWorker(
      'w',
      QUEUES.map((queue) => statusOfPool(queue)),
    )
    await eventually(() => fleet.heartbeat(worker).then(() => true))
    for (const queue of QUEUES) {
      const id = randomUUID()
      await fleet.send({ id, spec: { action: 'drain', queue, mode: 'soft' }, by: 'test' })
      const { commands, queueSettings } = await fleet.heartbeat(worker)
      expect(commands.map((command) => command.id)).toContain(id)
      expect(queueSettings.get(queue)?.drain).toMatchObject({ mode: 'soft', command: id })
      await eventually(() =>
        enqueue(queue).then(
          () => false,
          ({ code }) => code === 'queue_draining',
        ),
      )
      await fleet.respond(id, { worker: 'w', outcome: 'done' })
      const settled = await fleet.awaitResponses(id, AbortSignal.timeout(120_000))
      expect(settled?.responses).toMatchObject([{ worker: 'w', outcome: 'done' }])
    }
  })
})

it('a URL that names one server of a cluster is refused with the URL to use', async () => {
  const queue = 'one'
  const namespace = await spreadNamespace()
  const owner = await cluster.nodeOf(`{${namespace}}`)
  const other = cluster.nodes.slice(0, 3).find((node) => node !== owner)
  const broker = openBroker({ redisUrl: other?.url ?? '', namespace, queues: [queue], sizeLimit: 1_000, log: silent })
  onTestFinished(() => broker.close())
  const error = await eventually(() =>
    broker.counts(queue).then(
      () => undefined,
      (thrown: Error) => thrown.message.includes('cluster') && thrown,
    ),
  )
  expect(error).toMatchObject({
    code: 'redis_unavailable',
    message: `Redis at ${other?.url} is a cluster node; list the cluster's nodes in a URL such as redis+cluster://HOST:PORT,HOST:PORT`,
  })
})

it('a script that touches a key of another queue is refused', async () => {
  const redis = skewConnection(cluster.url)
  onTestFinished(() => redis.disconnect())
  const [one, two] = [prefixOf('any', 'one'), prefixOf('any', 'two')]
  const script = `#!lua\nredis.call('SET', KEYS[1], '1')\nreturn redis.call('GET', ARGV[1])`
  await eventually(() => redis.ping())
  await expect(redis.eval(script, 1, `${one}:a`, `${two}:b`)).rejects.toThrow(/non local key|same slot/)
})

it('a subscriber whose node is killed subscribes at another one, and says so', async () => {
  const { url, nodes } = await breakableCluster()
  let subscribed = 0
  const messages: string[] = []
  const channel = 'a-channel'
  const subscriber = openSubscriber({
    redisUrl: url,
    channels: [channel],
    onMessage: (_, message) => messages.push(message),
    onSubscribed: () => subscribed++,
    log: silent,
  })
  onTestFinished(() => subscriber.close())
  await eventually(() => subscriber.isConnected())
  const subscribers = await Promise.all(nodes.map((node) => node.ask('PUBSUB', 'NUMSUB', channel)))
  const at = subscribers.findIndex((reply) => (reply as string[])[1] === ':1')
  await nodes[at]?.crash()
  await eventually(() => subscribed === 2)
  await nodes[(at + 1) % nodes.length]?.ask('PUBLISH', channel, 'from another node')
  await eventually(() => messages.length > 0)
  expect({ subscribed, messages }).toEqual({ subscribed: 2, messages: ['from another node'] })
})

interface Line {
  readonly level: keyof Log
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

function recordingLog(): { readonly log: Log; readonly lines: readonly Line[] } {
  const lines: Line[] = []
  const at = (level: keyof Log) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: { ...fields } })
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

it('when the master of a queue is killed, its replica takes over: every task completes, and running tasks keep their locks', async () => {
  const { url, nodeOf } = await breakableCluster()
  const { log, lines } = recordingLog()
  const signalled: string[] = []
  const [afterFailover, duringFailover] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { broker, namespace, startPool, enqueue, settled } = await setup({
    redisUrl: url,
    log,
    locks: LASTING_LOCKS,
    concurrency: 5,
    handle: async ({ id, input: { n }, fencingToken, signal }) => {
      signal.addEventListener('abort', () => signalled.push(id), { once: true })
      if (n === 1) await afterFailover.promise
      if (n === 2) await duringFailover.promise
      if (n === 3) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      return { n: fencingToken }
    },
  })
  await startPool()
  const held = await Promise.all([1, 2].map((n) => enqueue(long, { input: { n }, timeoutMs: 300_000 })))
  await eventually(async () => (await broker.counts('rig')).active === held.length)

  const master = await nodeOf(prefixOf(namespace, 'rig'))
  await untilReplicated(master)
  await master.crash()
  duringFailover.resolve()

  // While the replica has not taken over, tasks are refused, and their callers try again.
  const accepted = () => eventually(() => enqueue(long).catch(() => undefined), FAILOVER_WITHIN_MS)
  const ids = await Promise.all(Array.from({ length: 20 }, accepted))
  for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed' })
  afterFailover.resolve()
  for (const id of held) expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 1 } })
  expect(signalled).toEqual([])

  const cancelled = await enqueue(long, { input: { n: 3 } })
  await eventually(async () => (await broker.find(cancelled))?.status === 'active')
  expect(await broker.cancel(cancelled, { stoppable: true })).toBe('cancelling')
  expect(await settled(cancelled)).toMatchObject({ status: 'cancelled' })

  const node = `127.0.0.1:${master.port}`
  // The settings of each node are also checked.
  const ofNode = lines.filter(({ fields }) => fields['node'] === node && fields['check'] === undefined)
  expect(ofNode.slice(0, 2)).toMatchObject([
    { level: 'warn', message: 'redis cluster node not reachable' },
    { level: 'info', message: 'redis cluster node replaced' },
  ])
})

/** Resolves when the replica has everything that its master has. */
async function untilReplicated(master: ClusterNode): Promise<void> {
  await eventually(async () => {
    const info = String(await master.ask('INFO', 'replication'))
    const [, replica] = /slave0:.*offset=(\d+)/.exec(info) ?? []
    return replica !== undefined && info.includes(`master_repl_offset:${replica}\r`)
  })
}

it('while the keys of one node are lost, queues on the other nodes go on, if the cluster does not require all slots', async () => {
  const { url, nodes, nodeOf } = await breakableCluster()
  await Promise.all(nodes.map((node) => node.ask('CONFIG', 'SET', 'cluster-require-full-coverage', 'no')))
  const { namespace, startPool, enqueue, settled } = await setup({
    redisUrl: url,
    locks: LASTING_LOCKS,
    handle: ({ fencingToken }) => ({ n: fencingToken }),
  })
  await startPool()
  expect(await settled(await enqueue(long))).toMatchObject({ status: 'completed' })

  const ours = await nodeOf(prefixOf(namespace, 'rig'))
  const lost = (nodes.indexOf(ours) + 1) % 3
  await Promise.all([nodes[lost]?.crash(), nodes[lost + 3]?.crash()])
  await eventually(async () => String(await ours.ask('CLUSTER', 'NODES')).includes('master,fail '))
  const accepted = () => eventually(() => enqueue(long).catch(() => undefined), FAILOVER_WITHIN_MS)
  const ids = await Promise.all(Array.from({ length: 20 }, accepted))
  for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 1 } })
})

it('when all nodes are killed and started again, the pool goes on, and the outage is reported once', async () => {
  const { url, nodes } = await breakableCluster()
  const { log, lines } = recordingLog()
  const { startPool, enqueue, settled, broker } = await setup({ redisUrl: url, log, handle: ({ input }) => input })
  await startPool()
  expect(await settled(await enqueue(long))).toMatchObject({ status: 'completed' })

  await Promise.all(nodes.map((node) => node.crash()))
  const refused = await eventually(() =>
    broker.ping().then(
      () => undefined,
      (error: unknown) => error,
    ),
  )
  expect(refused).toMatchObject({ code: 'redis_unavailable', message: `Redis is not reachable at ${url}` })
  await Promise.all(nodes.map((node) => node.start()))

  const after = await eventually(() => enqueue(long).catch(() => undefined), FAILOVER_WITHIN_MS)
  expect(await settled(after)).toMatchObject({ status: 'completed' })
  const ofAll = () => lines.filter(({ level, fields }) => level !== 'debug' && fields['node'] === undefined)
  await eventually(() => ofAll().length > 1)
  expect(ofAll().map(({ message }) => message)).toEqual(['redis connection lost', 'redis connection restored'])
})
