// The suites that every broker must pass, on a Redis Cluster of three real nodes. A full run has all of them. Otherwise, those whose
// cases use one queue run on a single Redis only (conformance.test.ts), because all keys of a queue are in one slot of one node. The
// last test shows that each script ran here nevertheless.
import { createHash } from 'node:crypto'
import type { OpenBackend } from '@bullpen/testing'
import { brokerConformance, privateCluster } from '@bullpen/testing'
import { FlowProducer, type Job, type JobsOptions, Queue } from 'bullmq'
import { afterAll, expect, inject, it, onTestFinished } from 'vitest'
import { workerConnection } from '../connection.ts'
import { prefixOf } from '../keys.ts'
import { ownScripts } from '../scripts/all-scripts.fixture.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'
import { keepRenewalThread, newNamespace, openBullmqOn } from './backend.fixture.ts'

/** Suites of one queue that run here nevertheless, because they run scripts that no other suite runs. */
const SAMPLE: readonly string[] = [
  'the record of a task',
  'the verdict on an attempt',
  'steps',
  'limits of an API key',
  'a search for dead tasks',
]

const cluster = await privateCluster()
afterAll(() => cluster.end())

/** How many tests had their queue on each node. */
const queuesOn = cluster.nodes.map(() => 0)

/** The queue of each test is on another node than that of the test before, and the fleet's keys are on a third one. */
const openOnCluster: OpenBackend = async (options) => {
  const target = queuesOn.indexOf(Math.min(...queuesOn))
  for (;;) {
    const namespace = newNamespace()
    const [queue, fleet] = await Promise.all([
      cluster.nodeOf(prefixOf(namespace, options.queues[0] ?? '')),
      cluster.nodeOf(`{${namespace}}`),
    ])
    if (queue !== cluster.nodes[target] || fleet === queue) continue
    queuesOn[target] = (queuesOn[target] ?? 0) + 1
    return openBullmqOn(cluster.url, namespace, options)
  }
}

keepRenewalThread(cluster.url)
brokerConformance('BullMQ on a cluster', openOnCluster, {
  only: ({ title, within }) => inject('scale') === 'full' || within === 'several slots' || SAMPLE.includes(title),
})

it('the queues of these tests were on all three nodes', () => {
  expect(Math.min(...queuesOn)).toBeGreaterThan(0)
})

/** Scripts that no case of the suites runs for certain. */
const NOT_RUN: ReadonlySet<string> = new Set([
  // the fleet's, which redis/cluster.test.ts runs on a cluster
  ...['announce-command', 'apply-enqueue-rate', 'apply-settings', 'leave-fleet', 'read-commands', 'read-workers'],
  ...['respond-to-command', 'store-command', 'worker-heartbeat'],
  // of gauges, which read a single queue
  'read-head',
  // of a connection to a single server
  'probe-primary',
  // of rates that several processes share, and of runs that wait for their leader
  ...['lease-tokens', 'visit-run', 'sample-run-tasks', 'find-missing-tasks'],
  // repairs of what another program has changed
  ...[
    'correct-sums',
    'count-active',
    'find-drift',
    'find-unindexed-dead',
    'index-dead',
    'prune-fingerprint',
    'read-unfinished',
  ],
  ...['repair-entries', 'repair-totals', 'delete-orphans', 'count-remaining', 'read-time', 'read-cancel-reply'],
])

it("a team's own Queue adds and changes its jobs on the cluster", async () => {
  const prefix = prefixOf(newNamespace(), 'q')
  const client = workerConnection(cluster.url, { debug() {}, info() {}, warn() {}, error() {} })
  const options = { connection: client, prefix }
  const [queue, flows] = [new Queue('q', options, bullpenBackend()), new FlowProducer(options, bullpenBackend())]
  onTestFinished(async () => {
    await Promise.all([queue.close(), flows.close()])
    client.disconnect()
  })
  const add = (jobId: string, more: JobsOptions = {}) => queue.add('x', {}, { jobId, ...more })
  const start = async ({ id = '' }: Job): Promise<void> => {
    await client.lrem(queue.toKey('wait'), 1, id)
    await client.lpush(queue.toKey('active'), id)
  }
  const fail = async (job: Job): Promise<void> => {
    await start(job)
    await job.moveToFailed(new Error('no'), '0')
  }

  const retried = await add('retried')
  await fail(retried)
  await retried.retry()
  await fail(retried)
  await queue.retryJobs()
  expect(await retried.getState()).toBe('waiting')
  await queue.addBulk([1, 2].map((n) => ({ name: 'x', data: { n } })))
  const later = await add('later', { delay: 3_600_000 })
  await later.changeDelay(7_200_000)
  await later.promote()
  await later.changePriority({ priority: 3 })
  await later.updateData({ is: 'changed' })
  expect(await queue.getJob('later')).toMatchObject({ data: { is: 'changed' }, priority: 3 })
  await later.remove()
  expect(await queue.backend.readEvents('$', 1)).toBeNull()
  const parts = { queueName: 'q', name: 'x' }
  const { job: parent } = await flows.add({ ...parts, children: [{ ...parts, opts: { jobId: 'child' } }] })
  await parent.removeUnprocessedChildren()
  expect(await queue.getJob('child')).toBeUndefined()
  const other = await add('other')
  await start(other)
  const child = await add('child', { parent: { id: 'other', queue: queue.qualifiedName } })
  expect(await other.moveToWaitingChildren('0')).toBe(true)
  expect(await child.removeChildDependency()).toBe(true)
  expect(await other.getState()).toBe('waiting')
  await fail(retried)
  expect(await queue.clean(0, 10, 'failed')).toEqual(['retried'])
  await client.hset(queue.toKey('orphan'), 'name', 'x')
  expect(await queue.removeOrphanedJobs()).toBe(1)
  const hourly = { every: 3_600_000 }
  const next = await queue.upsertJobScheduler('s', hourly)
  const schedulers = await queue.jobScheduler
  const after = await schedulers.upsertJobScheduler(
    's',
    hourly,
    's',
    {},
    {},
    { override: false, producerId: next?.id ?? '' },
  )
  expect(await after?.getState()).toBe('delayed')
  expect(await queue.removeJobScheduler('s')).toBe(true)
  await queue.pause()
  await queue.resume()
  expect(await queue.isPaused()).toBe(false)
  await queue.drain()
  await queue.obliterate()
  expect(await client.exists(queue.toKey('meta'))).toBe(0)
})

it('every other script has run on the cluster, where a script that touches a second slot fails', async () => {
  const missing: string[] = []
  for (const { name, lua } of ownScripts) {
    const sha = createHash('sha1').update(lua).digest('hex')
    const replies = await Promise.all(cluster.nodes.map((node) => node.ask('SCRIPT', 'EXISTS', sha)))
    if (!replies.flat().includes(':1')) missing.push(name.replace('bullpen:', ''))
  }
  expect(missing.filter((name) => !NOT_RUN.has(name))).toEqual([])
})
