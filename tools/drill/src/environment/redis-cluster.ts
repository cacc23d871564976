// Starts a drill's Redis Cluster, which has three nodes, each with one of the drill's queues.
import { setTimeout as sleep } from 'node:timers/promises'
import { type DrillRedis, newNamespace } from './drill-setup.ts'

interface Node {
  ask(...command: readonly string[]): Promise<unknown>
  start(): Promise<void>
  crash(): Promise<void>
}

interface Cluster {
  readonly url: string
  readonly nodes: readonly Node[]
  nodeOf(tag: string): Promise<Node>
  end(): Promise<void>
}
type TemporaryCluster = (name: string) => Promise<Cluster>

export interface DrillCluster extends DrillRedis {
  /** Kills the node of a queue with SIGKILL, and starts it again. Resolves when all nodes serve the cluster. */
  restartNode(queue: string): Promise<void>
}

const POLL_MS = 20

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

async function spreadingNamespace({ nodes, nodeOf }: Cluster, queues: readonly string[]): Promise<string> {
  for (;;) {
    const namespace = newNamespace()
    const used = await Promise.all(queues.map((queue) => nodeOf(`{${namespace}.${queue}}`)))
    if (new Set(used).size === nodes.length) return namespace
  }
}

async function isServing(node: Node): Promise<boolean> {
  return String(await node.ask('CLUSTER', 'INFO')).includes('cluster_state:ok')
}
