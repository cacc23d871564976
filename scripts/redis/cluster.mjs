// Starts a Redis Cluster of private servers on loopback, for tests and drills. Its data is in a temporary directory, and neither the
// servers nor the data outlive this process.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../system/ports.mjs'
import { stopWithThisProcess } from '../system/stop-with-this-process.mjs'
import { UserError } from '../system/user-error.mjs'
import { askRedis } from './probe.mjs'
import { startRedisServer, WRITES_BEFORE_IT_REPLIES } from './server.mjs'

const HOST = '127.0.0.1'
const SLOTS = 16_384
const POLL_MS = 20
/** How long the cluster may take to become ready, in ms. A master takes at least 2 s to become writable after it starts. */
const READY_TIMEOUT = 60_000

/**
 * @param {string} name part of the directory's name
 * @param {{ masters?: number, replicas?: number, nodeTimeout?: number }} [options] `replicas` is the number for each master.
 *   `nodeTimeout` is how long a node may be silent before the others take it for failed, in ms.
 */
export async function temporaryCluster(name, { masters = 3, replicas = 0, nodeTimeout = 5_000 } = {}) {
  const dir = mkdtempSync(join(tmpdir(), `bullpen-${name}-`))
  const count = masters * (1 + replicas)
  const ports = await freePorts(2 * count)
  const nodes = Array.from({ length: count }, (_, i) =>
    clusterNode({ root: dir, dir: join(dir, `${i}`), port: ports[2 * i], busPort: ports[2 * i + 1], nodeTimeout }),
  )
  const end = async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    await Promise.all(nodes.map((node) => node.start()))
    await joinNodes(nodes, masters)
  } catch (error) {
    await end()
    throw error
  }
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `${HOST}:${port}`).join(',')}`,
    /** The first `masters` nodes began as masters. The replicas of master `i` are nodes `masters + i`, `2 * masters + i`, … */
    nodes,
    /** Returns the node that holds the keys with this hash tag, which is given in its braces. */
    nodeOf: (tag) => nodeOf(nodes, tag),
    end,
  }
}

async function nodeOf(nodes, tag) {
  // Some nodes may be down.
  const asked = await Promise.any(
    nodes.map(async (node) => [await node.ask('CLUSTER', 'KEYSLOT', tag), await node.ask('CLUSTER', 'SLOTS')]),
  )
  const [slot, ranges] = [numberIn(asked[0]), asked[1]]
  const [, , [, port]] = ranges.find(([from, to]) => numberIn(from) <= slot && slot <= numberIn(to))
  return nodes.find((node) => node.port === numberIn(port))
}

/** Returns the number in a reply. Redis sends a number as `:5`. */
const numberIn = (reply) => Number(reply.slice(1))

/** Creates one of the cluster's servers, which can be killed and started again on the same port and data. */
function clusterNode({ root, dir, port, busPort, nodeTimeout }) {
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-port': `${busPort}`,
    'cluster-node-timeout': `${nodeTimeout}`,
    // A replica takes over from a dead master no matter how old its data is, because a test may kill a master at any time.
    'cluster-replica-validity-factor': '0',
    // A replica begins to copy at once, and the other nodes list it as soon as it has received a ping from its master.
    'repl-diskless-sync-delay': '0',
    'repl-ping-replica-period': '1',
    // A node that is stopped waits neither for its replicas nor for its first append-only file.
    'shutdown-timeout': '0',
    'shutdown-on-sigterm': 'force',
  }
  const args = [
    ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    ...WRITES_BEFORE_IT_REPLIES,
  ]
  let server
  let cancelCleanup = () => {}
  const url = `redis://${HOST}:${port}`
  return {
    url,
    port,
    busPort,
    async start() {
      mkdirSync(dir, { recursive: true })
      server = await startRedisServer({ dir, port, args })
      cancelCleanup = stopWithThisProcess({ pid: server.pid, dir: root })
    },
    /** Sends a command and returns the reply, as `askRedis` does. Throws if the reply is an error. */
    async ask(...command) {
      const reply = await askRedis(url, command)
      if (typeof reply === 'string' && reply.startsWith('-')) throw new Error(`${url}: ${command.join(' ')}: ${reply}`)
      return reply
    },
    kill: (signal) => server?.kill(signal),
    /** Kills the server with SIGKILL. Resolves when its process has ended. */
    async crash() {
      server?.kill('SIGKILL')
      await server?.exited()
      cancelCleanup()
    },
    async stop() {
      server?.kill('SIGCONT')
      await server?.stop()
      cancelCleanup()
    },
  }
}

/** Introduces the nodes to each other, spreads the slots over the masters, and waits until every node serves the cluster. */
async function joinNodes(nodes, masterCount) {
  const masters = nodes.slice(0, masterCount)
  await Promise.all(
    masters.map(async (node, i) => {
      const [from, to] = [i, i + 1].map((part) => Math.floor((part * SLOTS) / masterCount))
      await node.ask('CLUSTER', 'SET-CONFIG-EPOCH', `${i + 1}`)
      await node.ask('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to - 1}`)
    }),
  )
  // Each node is introduced to all others directly, because gossip alone would take seconds.
  for (const node of nodes) {
    for (const other of nodes) {
      if (other !== node) await node.ask('CLUSTER', 'MEET', HOST, `${other.port}`, `${other.busPort}`)
    }
  }
  const ids = await Promise.all(nodes.map((node) => node.ask('CLUSTER', 'MYID')))
  await until(nodes, 'the nodes have not discovered each other', async (node) => {
    const known = await node.ask('CLUSTER', 'NODES')
    return ids.every((id) => known.includes(id))
  })
  await Promise.all(nodes.slice(masterCount).map((node, i) => node.ask('CLUSTER', 'REPLICATE', ids[i % masterCount])))
  await until(nodes, 'the cluster is not ready', async (node) => {
    const info = await node.ask('CLUSTER', 'INFO')
    const isReady = info.includes('cluster_state:ok') && info.includes(`cluster_slots_assigned:${SLOTS}`)
    const replication = await node.ask('INFO', 'replication')
    const isLinked = !replication.includes('role:slave') || replication.includes('master_link_status:up')
    const slots = await node.ask('CLUSTER', 'SLOTS')
    const known = new Set(slots.flatMap(([, , ...owners]) => owners.map(([, port]) => port)))
    return isReady && isLinked && known.size === nodes.length
  })
}

async function until(nodes, otherwise, holds) {
  const deadline = performance.now() + READY_TIMEOUT
  for (;;) {
    if ((await Promise.all(nodes.map(holds))).every(Boolean)) return
    if (performance.now() > deadline) throw new UserError(`${otherwise} after ${READY_TIMEOUT / 1_000} s`)
    await sleep(POLL_MS)
  }
}
