// A broker and a pool on a Redis Cluster, one of whose nodes hangs: it accepts connections and does not respond.
import { privateCluster } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf } from '../keys.ts'
import { long, setup } from '../setup.fixture.ts'

/** In ms. A worker waits for a response for 15 s before it asks another node. */
const RECOVERED_WITHIN_MS = 120_000

it('when the node of a queue hangs, its tasks are accepted and run again once the replica has taken over', async () => {
  const cluster = await privateCluster({ replicas: 1, nodeTimeout: 1_000 })
  onTestFinished(() => cluster.end())
  const { broker, namespace, startPool, enqueue, settled } = await setup({
    redisUrl: cluster.url,
    handle: ({ fencingToken }) => ({ n: fencingToken }),
  })
  await startPool()
  expect(await settled(await enqueue(long))).toMatchObject({ status: 'completed' })

  const master = await cluster.nodeOf(prefixOf(namespace, 'rig'))
  master.kill('SIGSTOP')
  const id = await eventually(() => enqueue(long).catch(() => undefined), RECOVERED_WITHIN_MS)
  await eventually(async () => (await broker.find(id))?.status === 'completed', RECOVERED_WITHIN_MS)
  expect(await broker.find(id)).toMatchObject({ status: 'completed', output: { n: 1 } })
})
