// Enqueues to a Redis Cluster that are acknowledged only once a replica of the node that has the queue has the task.
import { randomUUID } from 'node:crypto'
import { privateCluster } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf } from '../keys.ts'
import { openProducer, outcome } from './replicated-server.fixture.ts'

const QUEUES = ['rig', 'other', 'third']
const NOT_REPLICATED = { code: 'not_replicated' }

it('a replicated enqueue waits for a replica of its queue, also after a failover', async () => {
  const cluster = await privateCluster({ replicas: 1, nodeTimeout: 1_000 })
  onTestFinished(() => cluster.end())
  const nodesOf = (namespace: string) => Promise.all(QUEUES.map((queue) => cluster.nodeOf(prefixOf(namespace, queue))))
  let namespace: string
  do namespace = `t-${randomUUID().slice(0, 12)}`
  while (new Set(await nodesOf(namespace)).size < QUEUES.length)
  const { broker, task, jobKey } = await openProducer(cluster.url, 500, namespace)

  const replicaOf = async (queue: string) => {
    const master = await cluster.nodeOf(prefixOf(namespace, queue))
    const replica = cluster.nodes[cluster.nodes.indexOf(master) + QUEUES.length] ?? expect.fail()
    return { master, replica }
  }
  const { master, replica } = await replicaOf('rig')
  const isAcknowledged = (queue: string) => async (): Promise<boolean> => {
    const wanted = task({ queue })
    return (await outcome(broker.enqueue(wanted))) === wanted.id
  }
  for (const queue of QUEUES) await eventually(isAcknowledged(queue))

  replica.kill('SIGSTOP')
  const silent = task()
  expect(await outcome(broker.enqueue(silent))).toMatchObject(NOT_REPLICATED)
  for (const queue of ['other', 'third']) await eventually(isAcknowledged(queue))
  replica.kill('SIGCONT')
  await eventually(async () => (await outcome(broker.enqueue({ ...silent, isRepeat: true }))) === silent.id)
  expect(await master.ask('EXISTS', jobKey(silent.id))).toBe(':1')

  // The replica takes over, and has no replica of its own until the old master is back.
  await master.crash()
  await eventually(async () => {
    const result = await outcome(broker.enqueue(task()))
    return typeof result === 'object' && result.code === 'not_replicated'
  })
  await master.start()
  await eventually(isAcknowledged('rig'))
  expect(await replica.ask('EXISTS', jobKey(silent.id))).toBe(':1')
})
