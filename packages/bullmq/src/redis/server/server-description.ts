// Reads how servers describe themselves: their reply to INFO, and a setting that INFO does not contain.
import { ReplyError } from 'ioredis'
import type { Commander } from '../../scripts/script.ts'
import { isCluster, keyOfNode } from '../redis-client.ts'
import { type DiskWrite, failedWrites } from './last-writes.ts'
import type { ServerDescription } from './server-checks.ts'

/** Returns the servers that hold data, by node. A single server's node is ''. */
export function serversOf(redis: Commander) {
  if (!isCluster(redis)) return [['', redis] as const]
  return redis.nodes('master').map((node) => [keyOfNode(node.options), node] as const)
}

export type Server = ReturnType<typeof serversOf>[number][1]

/** Takes one round trip. */
export async function describeServer(server: Server): Promise<ServerDescription> {
  const [info, values] = await Promise.all([
    unlessRefused(server.info()),
    unlessRefused(server.config('GET', 'hash-max-listpack-value')),
  ])
  const [, listpackValue] = Array.isArray(values) ? (values as readonly string[]) : []
  return { info, listpackValue }
}

/**
 * Returns whether the last write of each kind failed on any server. Kinds about which no server reports are left out. Takes one round trip.
 */
export async function lastWrites(redis: Commander): Promise<ReadonlyMap<DiskWrite, boolean>> {
  const infos = await Promise.all(serversOf(redis).map(([, server]) => unlessRefused(server.info('persistence'))))
  const failed = new Map<DiskWrite, boolean>()
  for (const info of infos) {
    for (const [write, hasFailed] of failedWrites(info ?? ''))
      failed.set(write, hasFailed || failed.get(write) === true)
  }
  return failed
}

/** Returns undefined if the server does not permit the command, or does not know it. */
export function unlessRefused<T>(reply: Promise<T>): Promise<T | undefined> {
  return reply.catch((error: unknown) => {
    if (error instanceof ReplyError) return undefined
    throw error
  })
}
