// Starts a drill's Redis Cluster, which has three nodes, each with one of the drill's queues.
import { setTimeout as sleep } from 'node:timers/promises'
import { holdsWithin } from '../holds-within.ts'
import { type DrillRedis, newNamespace } from './drill-setup.ts'
import { holdWrites } from './replicated-redis.ts'

interface Node {
  readonly port: number
  ask(...command: readonly string[]): Promise<unknown>
  start(): Promise<void>
  crash(): Promise<void>
  kill(signal: NodeJS.Signals): void
}

interface Cluster {
  readonly url: string
  readonly nodes: readonly Node[]
  nodeOf(tag: string): Promise<Node>
  end(): Promise<void>
}
type TemporaryCluster = (
  name: string,
  options?: { readonly replicas: number; readonly nodeTimeout: number },
) => Promise<Cluster>

export interface DrillCluster extends DrillRedis {
  /** Kills the node of a queue with SIGKILL, and starts it again. Resolves when all nodes serve the cluster. */
  restartNode(queue: string): Promise<void>
}

export interface FreezableCluster extends DrillRedis {
  /** Stops the node of a queue (SIGSTOP). Resolves when a replica has taken over. */
  freezeNode(queue: string): Promise<void>
  /** Resumes the node, which becomes a replica. */
  thaw(): Promise<void>
}

const POLL_MS = 20
const TAKEN_OVER_WITHIN_MS = 60_000

/**
 * Starts the cluster, and finds a namespace in which the three queues are on three different nodes. If the cluster is persistent, each
 * node writes every command to its file before it replies.
 */
export async function openCluster(
  queues: readonly string[],
  { isPersistent = false }: { readonly isPersistent?: boolean } = {},
): Promise<DrillCluster> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/cluster.mjs', import.meta.url).href
  const { temporaryCluster } = (await import(script)) as { temporaryCluster: TemporaryCluster }
  const cluster = await temporaryCluster('drill')
  const { nodes, nodeOf } = cluster
  // Without a restart, the disk should not affect the figures.
  if (!isPersistent) await Promise.all(nodes.map((node) => node.ask('CONFIG', 'SET', 'appendonly', 'no')))
  const namespace = await spreadingNamespace(cluster, queues)
  return {
    ...cluster,
    namespace,
    queues,
    async restartNode(queue) {
      const node = await nodeOf(`{${namespace}.${queue}}`)
      await node.crash()
      await node.start()
      while (!(await Promise.all(nodes.map(isServing))).every(Boolean)) await sleep(POLL_MS)
    },
  }
}

/** Starts a cluster whose nodes have a replica each. */
export async function openFreezableCluster(queues: readonly string[]): Promise<FreezableCluster> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/cluster.mjs', import.meta.url).href
  const { temporaryCluster } = (await import(script)) as { temporaryCluster: TemporaryCluster }
  const cluster = await temporaryCluster('drill', { replicas: 1, nodeTimeout: 1_000 })
  const namespace = newNamespace()
  let frozen: Node | undefined
  return {
    url: cluster.url,
    namespace,
    queues,
    async freezeNode(queue) {
      const tag = `{${namespace}.${queue}}`
      const node = await cluster.nodeOf(tag)
      const others = cluster.nodes.filter((each) => each !== node)
      await holdWrites(node, others)
      node.kill('SIGSTOP')
      frozen = node
      const isTakenOver = async (): Promise<boolean> => (await ownerSeenBy(others, tag)) !== portOf(node)
      if (!(await holdsWithin(TAKEN_OVER_WITHIN_MS, isTakenOver))) throw new Error('no replica has taken over')
    },
    async thaw() {
      frozen?.kill('SIGCONT')
      await frozen?.ask('CLIENT', 'UNPAUSE')
      while (!(await Promise.all(cluster.nodes.map(isServing))).every(Boolean)) await sleep(POLL_MS)
    },
    end: cluster.end,
  }
}

const numberIn = (reply: unknown): number => Number(String(reply).slice(1))
const portOf = ({ port }: Node): number => port

/** Returns the port of the master of a hash tag, as the first of these nodes sees it. */
async function ownerSeenBy([node]: readonly Node[], tag: string): Promise<number> {
  const slot = numberIn(await node?.ask('CLUSTER', 'KEYSLOT', tag))
  const ranges = (await node?.ask('CLUSTER', 'SLOTS')) as [unknown, unknown, [unknown, unknown]][]
  const range = ranges.find(([from, to]) => numberIn(from) <= slot && slot <= numberIn(to))
  return numberIn(range?.[2][1])
}

async function spreadingNamespace({ nodes, nodeOf }: Cluster, queues: readonly string[]): Promise<string> {
  for (;;) {
    const namespace = newNamespace()
    const used = await Promise.all(queues.map((queue) => nodeOf(`{${namespace}.${queue}}`)))
    if (new Set(used).size === nodes.length) return namespace
  }
}

/** Returns whether the node serves. One that copies the data of its new master replies with an error. */
async function isServing(node: Node): Promise<boolean> {
  const info = await node.ask('CLUSTER', 'INFO').catch((error: unknown) => {
    if (String(error).includes('-LOADING')) return ''
    throw error
  })
  return String(info).includes('cluster_state:ok')
}
