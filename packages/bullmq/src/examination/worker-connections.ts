// Counts the workers of queues by the names that BullMQ gives to their connections.
import type { FoundQueue } from './queue-search.ts'

/**
 * Returns a function that counts the connections of a queue's workers, or returns undefined if a server did not permit CLIENT LIST. A Worker
 * names its blocking connection `PREFIX:` and the name of the queue in base64, and then `:w:` and its own name if it has one.
 */
export function countWorkers(lists: readonly (string | undefined)[]): (queue: FoundQueue) => number | undefined {
  if (lists.includes(undefined)) return () => undefined
  const names = lists.flatMap((list) => [...(list ?? '').matchAll(/(?:^| )name=(\S+)/gm)].map(([, name = '']) => name))
  return ({ prefix, name }) => {
    const own = `${prefix}:${Buffer.from(name).toString('base64')}`
    return names.filter((each) => each === own || each.startsWith(`${own}:w:`)).length
  }
}
