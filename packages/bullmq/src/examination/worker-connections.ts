// Counts the workers of queues by the names that BullMQ gives to their connections.
import type { FoundQueue } from './queue-search.ts'

/**
 * Returns a function that counts the connections of a queue's workers in the reply to CLIENT LIST, or returns undefined if the server did
 * not permit the command. A Worker names its blocking connection `PREFIX:` and the name of the queue in base64, and then `:w:` and its own
 * name if it has one. In a cluster, it may have a connection of that name to each node, so only the node of the queue is asked.
 */
export function countWorkers(clients: string | undefined): (queue: FoundQueue) => number | undefined {
  if (clients === undefined) return () => undefined
  const names = [...clients.matchAll(/(?:^| )name=(\S+)/gm)].map(([, name = '']) => name)
  return ({ prefix, name }) => {
    const own = `${prefix}:${Buffer.from(name).toString('base64')}`
    return names.filter((each) => each === own || each.startsWith(`${own}:w:`)).length
  }
}
