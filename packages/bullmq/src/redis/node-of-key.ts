// Determines the server to which a key's commands are sent: the only server, or the cluster node that holds the key's hash slot.
// The module loads as little code as possible, because the lock-renewal thread uses it.
import { Command } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { isCluster, keyOfNode } from './redis-client.ts'

/**
 * Returns the node's host and port. Returns '' for a single server, or if the client has not received the list of the cluster's
 * nodes.
 */
export function nodeOfKey(redis: Commander, key: string): string {
  if (!isCluster(redis)) return ''
  return redis.slots[new Command('exists', [key]).getSlot()]?.[0] ?? ''
}

/**
 * Closes the connection to a node, or to the single server, because the server does not respond. The commands in flight are
 * rejected or never settle. A client for a single server connects again. A cluster client keeps its connections to the other
 * nodes and, with its next command, asks one of them which node has the slot now.
 */
export function closeConnection(redis: Commander, node: string): void {
  if (!isCluster(redis)) {
    redis.disconnect(true)
    return
  }
  for (const each of redis.nodes()) {
    if (keyOfNode(each.options) === node) each.disconnect()
  }
}
