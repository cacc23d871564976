// Finds the nodes of a Redis Cluster that do not respond. The client's own errors do not name them: a command waits for another node to
// take over, and if the cluster requires all slots, every node refuses commands.
import { withTimeout } from '@bullpen/engine/node'
import { Command } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { isCluster, keyOfNode } from './redis-client.ts'

/** How long a node may take to respond, in ms. */
const RESPONDS_WITHIN_MS = 800

/**
 * Returns the nodes that have slots and do not respond, each with those of the given keys that it has. Returns none for a single server.
 * Takes one round trip in a cluster, with one command for each node.
 */
export async function unreachableNodes(
  redis: Commander,
  keys: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (!isCluster(redis)) return new Map()
  const byNode = Map.groupBy(keys, (key) => redis.slots[new Command('exists', [key]).getSlot()]?.[0] ?? '')
  // Also a node without these keys: if the cluster requires all slots, every node refuses commands.
  const owners = new Set([...byNode.keys(), ...redis.slots.flatMap((nodes) => nodes.slice(0, 1))])
  const servers = new Map(redis.nodes().map((server) => [keyOfNode(server.options), server]))
  const isReachable = async (node: string): Promise<boolean> => {
    // The client drops a node whose connection is lost until it has read the list of nodes again.
    const reply = servers.get(node)?.ping() ?? Promise.reject(new Error('not connected'))
    return withTimeout(reply, RESPONDS_WITHIN_MS, () => new Error('no response')).then(
      () => true,
      () => false,
    )
  }
  const probes = Array.from(owners, async (node) => {
    // Before the client has read the list of nodes, it does not know which node has a key.
    return node === '' || (await isReachable(node)) ? [] : [[node, byNode.get(node) ?? []] as const]
  })
  return new Map((await Promise.all(probes)).flat())
}
