// Lock renewal on a Redis Cluster of real nodes, one of which hangs: it accepts connections and does not respond.
import { randomUUID } from 'node:crypto'
import { type ClusterNode, type PrivateCluster, privateCluster } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { addressIn } from '../connection.ts'
import { renewalConnection } from '../redis/renewal-connection.ts'
import { machineMs } from './machine-clock.ts'
import { startRenewal } from './renewal.ts'
import { SharedLockTable } from './shared-lock-table.ts'

const LOCK_MS = 3_000
const FAILOVER_WITHIN_MS = 120_000

/** A queue whose locks are on this node, and a table for two locks. */
async function queueOn(cluster: PrivateCluster, node: ClusterNode | undefined) {
  for (;;) {
    const tag = `{${randomUUID().slice(0, 12)}}`
    if ((await cluster.nodeOf(tag)) !== node) continue
    const [base, table] = [`${tag}:q:`, SharedLockTable.of(2)]
    return {
      base,
      table,
      async lock(slot: number, at: ClusterNode | undefined, ms: number) {
        await at?.ask('HSET', `${base}task-${slot}`, 'lock', `${Date.now() + ms} token`)
        table.take(slot, `task-${slot}`, 'token', machineMs())
      },
      /** Returns whether the lock has been renewed at this node: it then expires within its duration. */
      async isRenewed(slot: number, at: ClusterNode | undefined) {
        const stored = String(await at?.ask('HGET', `${base}task-${slot}`, 'lock'))
        const leftMs = Number(/\d{13}/.exec(stored)?.[0]) - Date.now()
        return leftMs > 0 && leftMs <= LOCK_MS
      },
    }
  }
}

it('when the node of one queue hangs, its locks are renewed at the replica that takes over, and those of other queues all the time', async () => {
  const cluster = await privateCluster({ replicas: 1, nodeTimeout: 1_000 })
  onTestFinished(() => cluster.end())
  const [hung, other, , replica] = cluster.nodes
  const redis = renewalConnection(addressIn(cluster.url))
  onTestFinished(() => redis.disconnect())
  await eventually(() => redis.ping())

  const [queue, neighbour] = [await queueOn(cluster, hung), await queueOn(cluster, other)]
  for (const [number, { base, table }] of [queue, neighbour].entries()) {
    const lastTurn = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    const times = { lockMs: LOCK_MS, renewalMs: 200, eventLoopStallLimitMs: undefined, lastTurn }
    const renewal = startRenewal(redis, { number, base, ...times, tables: [table.shared] })
    onTestFinished(() => renewal.end())
  }
  await queue.lock(0, hung, 10 * LOCK_MS)
  await neighbour.lock(0, other, 10 * LOCK_MS)
  await eventually(() => queue.isRenewed(0, hung))
  await eventually(() => neighbour.isRenewed(0, other))

  hung?.kill('SIGSTOP')
  await eventually(async () => String(await replica?.ask('ROLE')).startsWith('master'), FAILOVER_WITHIN_MS)
  // Another worker may run tasks of the queue by now, and so may this one.
  await queue.lock(1, replica, 10 * FAILOVER_WITHIN_MS)
  await eventually(() => queue.isRenewed(1, replica), FAILOVER_WITHIN_MS)
  expect(await neighbour.isRenewed(0, other)).toBe(true)
  expect(neighbour.table.isLost(0)).toBe(false)
})
