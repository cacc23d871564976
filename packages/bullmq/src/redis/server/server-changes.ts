// Notices when a connection's commands may reach another server than before, or one that has restarted.
import type { Commander } from '../../scripts/script.ts'
import { isCluster, keyOfNode } from '../redis-client.ts'

type Events = Pick<Commander, 'on' | 'off'>

/**
 * Calls `changed` whenever the connection is established and, in a cluster, whenever the masters have changed. Returns a function that
 * stops this.
 */
export function onServerChange(redis: Events, changed: () => void): () => void {
  let masters = ''
  const onRefresh = (): void => {
    const listed = mastersOf(redis as Commander)
    if (listed === masters) return
    masters = listed
    changed()
  }
  redis.on('ready', changed)
  // A cluster client opens a new connection to a node that has restarted, and keeps the connection to a replica that takes over.
  redis.on('+node', changed)
  redis.on('refresh', onRefresh)
  return () => {
    redis.off('ready', changed)
    redis.off('+node', changed)
    redis.off('refresh', onRefresh)
  }
}

function mastersOf(redis: Commander): string {
  if (!isCluster(redis)) return ''
  return redis
    .nodes('master')
    .map(({ options }) => keyOfNode(options))
    .toSorted()
    .join(' ')
}
