// Reports each Redis Cluster node that can't be reached. Meanwhile, the client stays connected to the cluster, and commands for
// the other nodes still work.
import type { Log } from '@bullpen/contract'
import type { Cluster, Redis } from 'ioredis'
import { keyOfNode } from '../redis-client.ts'
import { silentMsOf } from '../silence.ts'

interface AwayNode {
  readonly since: number
  /** When the cluster stopped listing the node because the node's slots had moved to another one. */
  replacedAt?: number
}

export interface NodeReporter {
  /** Watches the nodes of one cluster client. */
  follow(cluster: Cluster): void
  /** Whether a node that the cluster lists can't be reached. */
  isAnyAway(): boolean
}

/**
 * Creates a reporter that logs one line when a node can't be reached, and one when the node is reachable again or the cluster no
 * longer lists it.
 */
export function createNodeReporter(
  address: string,
  log: Log,
  isConnectionError: (error: Error) => boolean,
): NodeReporter {
  const away = new Map<string, AwayNode>()

  const failed = (node: string, error: Error): void => {
    const known = away.get(node)
    if (known === undefined) {
      away.set(node, { since: performance.now() - silentMsOf(error) })
      log.warn({ redis: address, node }, 'redis cluster node not reachable')
    }
  }
  const unreachableMs = ({ since }: AwayNode): number => Math.round(performance.now() - since)
  const reachable = (node: string): void => {
    const known = away.get(node)
    if (!away.delete(node) || known === undefined) return
    log.info({ redis: address, node, unreachableMs: unreachableMs(known) }, 'redis cluster node reachable again')
  }
  // Other clients learn later that the node was replaced and still report its errors, so the reporter remembers the node.
  const replaced = (node: string, known: AwayNode): void => {
    if (known.replacedAt !== undefined) return
    known.replacedAt = performance.now()
    log.info({ redis: address, node, unreachableMs: unreachableMs(known) }, 'redis cluster node replaced')
  }

  return {
    isAnyAway: () => [...away.values()].some(({ replacedAt }) => replacedAt === undefined),
    follow(cluster) {
      cluster.on('node error', (error: Error, node: string) => {
        if (isConnectionError(error)) failed(node, error)
      })
      cluster.on('+node', (connection: Redis) => {
        connection.once('ready', () => reachable(keyOfNode(connection.options)))
      })
      cluster.on('refresh', () => {
        if (away.size === 0) return
        const listed = new Set(cluster.nodes().map(({ options }) => keyOfNode(options)))
        for (const [node, known] of away) if (!listed.has(node)) replaced(node, known)
      })
    },
  }
}
