// The suites that every broker must pass, on a Redis Cluster of three real nodes.
import type { OpenBackend } from '@bullpen/testing'
import { brokerConformance, privateCluster } from '@bullpen/testing'
import { afterAll, expect, it } from 'vitest'
import { prefixOf } from '../keys.ts'
import { keepRenewalThread, newNamespace, openBullmqOn } from './backend.fixture.ts'

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
brokerConformance('BullMQ on a cluster', openOnCluster)

it('the queues of these tests were on all three nodes', () => {
  expect(Math.min(...queuesOn)).toBeGreaterThan(0)
})
