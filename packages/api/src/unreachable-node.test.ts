// The diagnosis by a whole API while a master of its Redis Cluster is dead or silent.
import { randomUUID } from 'node:crypto'
import type { Diagnosis } from '@bullpen/contract'
import { type PrivateCluster, privateCluster } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { catalogue } from './api.fixture.ts'
import { createApi } from './create-api.ts'

const KEY = 'unreachable-node-key-0123456789'
const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const silent = { debug() {}, info() {}, warn() {}, error() {} }

const ownersOf = ({ nodeOf }: PrivateCluster, namespace: string) =>
  Promise.all(['', '.cpu', '.mail'].map((suffix) => nodeOf(`{${namespace}${suffix}}`)))

/** Returns a namespace whose own keys and two queues are on this number of nodes. */
async function namespaceOn(cluster: PrivateCluster, count: number): Promise<string> {
  for (;;) {
    const namespace = `t-${randomUUID().slice(0, 8)}`
    if (new Set(await ownersOf(cluster, namespace)).size === count) return namespace
  }
}

/** Starts an API that has accepted a task, and whose diagnosis finds no trouble with Redis. Returns how to diagnose it. */
async function startHealthyApi(redisUrl: string, namespace: string): Promise<() => Promise<Diagnosis>> {
  const api = await createApi({
    catalogue,
    log: silent,
    config: { redisUrl, keys: [KEY], port: 0, metricsPort: 0, namespace },
  })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const diagnose = async () => (await (await fetch(`${url}/v1/diagnosis`, { headers: HEADERS })).json()) as Diagnosis
  const body = JSON.stringify({ task: 'math.square', input: { n: 4 } })
  const { status } = await fetch(`${url}/v1/tasks`, { method: 'POST', headers: HEADERS, body })
  expect(status).toBe(202)
  expect(found(await diagnose(), 'redis_connection')).toEqual([])
  return diagnose
}

const found = ({ findings }: Diagnosis, check: string) => findings.filter((finding) => finding.check === check)

test('the diagnosis names each dead node, and examines the queues of the others unless they refuse commands, too', async () => {
  const cluster = await privateCluster()
  const { nodes } = cluster
  onTestFinished(cluster.end)
  const requireAllSlots = (value: 'yes' | 'no', of = nodes) =>
    Promise.all(of.map((node) => node.ask('CONFIG', 'SET', 'cluster-require-full-coverage', value)))
  await requireAllSlots('no')
  const namespace = await namespaceOn(cluster, nodes.length)
  const [shared, , mail] = await ownersOf(cluster, namespace)
  const diagnose = await startHealthyApi(cluster.url, namespace)

  await mail?.crash()
  const diagnosis = await eventually(async () => {
    const each = await diagnose()
    return found(each, 'unserved_queues').length > 0 && found(each, 'redis_connection').length > 0 && each
  }, 120_000)
  expect(found(diagnosis, 'redis_connection')).toMatchObject([
    { severity: 'error', node: `127.0.0.1:${mail?.port}`, problem: expect.stringContaining('not examined: mail') },
  ])
  expect(found(diagnosis, 'unserved_queues')).toMatchObject([{ queue: 'cpu' }])
  expect(diagnosis.skipped).toEqual(['schedules', 'different_schedules'])

  const alive = nodes.filter((node) => node !== mail)
  await requireAllSlots('yes', alive)
  const refused = await eventually(async () => {
    const each = await diagnose()
    return each.passed.length === 0 && each
  }, 120_000)
  expect(refused.findings).toMatchObject([{ check: 'redis_connection', node: `127.0.0.1:${mail?.port}` }])
  await requireAllSlots('no', alive)

  await shared?.crash()
  const nodesNamed = await eventually(async () => {
    const { findings } = await diagnose()
    return findings.length === 2 && findings
  }, 120_000)
  const names = [mail, shared].map((node) => `127.0.0.1:${node?.port}`)
  expect(nodesNamed.map(({ node }) => node).sort()).toEqual(names.sort())
  expect(nodesNamed).toContainEqual(
    expect.objectContaining({ problem: expect.stringContaining('nothing else was examined') }),
  )
})

test.each([
  ['has queues', 3],
  ['has none of its keys', 2],
])('the diagnosis names a silent node that %s, because the cluster then refuses all commands', async (_has, count) => {
  const cluster = await privateCluster({ nodeTimeout: 1_000 })
  onTestFinished(cluster.end)
  const namespace = await namespaceOn(cluster, count)
  const owners = await ownersOf(cluster, namespace)
  const hung = cluster.nodes.find((node) => !owners.includes(node)) ?? owners[2]
  const diagnose = await startHealthyApi(cluster.url, namespace)

  hung?.kill('SIGSTOP')
  const { findings } = await eventually(async () => {
    const each = await diagnose()
    return each.passed.length === 0 && each
  }, 120_000)
  expect(findings).toMatchObject([{ check: 'redis_connection', node: `127.0.0.1:${hung?.port}` }])
})
