// Starts a drill's Redis Cluster, which has three nodes, each with one of the drill's queues.
import { type DrillRedis, newNamespace } from './drill-setup.ts'

interface Cluster {
  readonly url: string
  readonly nodes: readonly { ask(...command: readonly string[]): Promise<unknown> }[]
  nodeOf(tag: string): Promise<unknown>
  end(): Promise<void>
}
type TemporaryCluster = (name: string) => Promise<Cluster>

/** Starts the cluster, and finds a namespace in which the three queues are on three different nodes. */
export async function openCluster(queues: readonly string[]): Promise<DrillRedis> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/redis/cluster.mjs', import.meta.url).href
  const { temporaryCluster } = (await import(script)) as { temporaryCluster: TemporaryCluster }
  const cluster = await temporaryCluster('drill')
  // Persistence is off, because no drill stops Redis and the disk should not affect the figures.
  await Promise.all(cluster.nodes.map((node) => node.ask('CONFIG', 'SET', 'appendonly', 'no')))
  for (;;) {
    const namespace = newNamespace()
    const nodes = await Promise.all(queues.map((queue) => cluster.nodeOf(`{${namespace}.${queue}}`)))
    if (new Set(nodes).size === cluster.nodes.length) return { ...cluster, namespace, queues }
  }
}
