// Reports the nodes of a Redis Cluster that can't be reached. The cluster as a whole is connected meanwhile, and commands for the
// other nodes are answered.
import type { Log } from '@bullpen/contract'
import type { Cluster } from 'ioredis'

interface AwayNode {
  readonly since: number
  /** When the cluster stopped listing the node, because its slots have moved to another one. */
  replacedAt?: number
}

export interface NodeReporter {
  /** Follows the nodes of one client of the cluster. */
  follow(cluster: Cluster): void
}

/** Writes one line when a node can't be reached, and one when it can or when the cluster no longer lists it. */
export function createNodeReporter(
  address: string,
  log: Log,
  isConnectionError: (error: Error) => boolean,
): NodeReporter {
  const away = new Map<string, AwayNode>()

  const failed = (node: string): void => {
    const known = away.get(node)
    if (known === undefined) {
      away.set(node, { since: performance.now() })
      log.warn({ redis: address, node }, 'redis cluster node not reachable')
    }
  }
  const awayMs = ({ since }: AwayNode): number => Math.round(performance.now() - since)
  const reachable = (node: string): void => {
    const known = away.get(node)
    if (!away.delete(node) || known === undefined) return
    log.info({ redis: address, node, awayMs: awayMs(known) }, 'redis cluster node reachable again')
  }
  // Other clients learn later that the node was replaced, and still report errors of it, so the node is remembered.
  const replaced = (node: string, known: AwayNode): void => {
    if (known.replacedAt !== undefined) return
    known.replacedAt = performance.now()
    log.info({ redis: address, node, awayMs: awayMs(known) }, 'redis cluster node replaced')
  }

  return {
    follow(cluster) {
      cluster.on('node error', (error: Error, node: string) => {
        if (isConnectionError(error)) failed(node)
      })
      cluster.on(
        '+node',
        (connection: { readonly options: NodeOptions; once(event: 'ready', then: () => void): void }) => {
          connection.once('ready', () => reachable(keyOf(connection.options)))
        },
      )
      cluster.on('refresh', () => {
        if (away.size === 0) return
        const listed = new Set(cluster.nodes().map(({ options }) => keyOf(options)))
        for (const [node, known] of away) if (!listed.has(node)) replaced(node, known)
      })
    },
  }
}

interface NodeOptions {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

function keyOf({ host, port }: NodeOptions): string {
  return `${host}:${port}`
}
