// Keeps a client away from replicas. After a failover, the old primary is a read-only replica, which refuses every write. The client
// then reconnects, because its address may lead to the new primary by now. As long as the address leads to a replica, which it also does
// if it is the wrong one, the client reconnects less and less often.
//
// If the client keeps commands while it is not connected, a refused command is sent again on the next connection. Otherwise, it is
// rejected.
import { Command, Redis, type RedisOptions } from 'ioredis'
import { type Commander, runScript } from '../../scripts/script.ts'
import { probeNodeScript, probePrimaryScript } from '../../store/scripts.ts'

/**
 * A client emits this with the trouble (trouble.ts) when its server refuses commands for now, and once for each connection to a replica.
 */
export const REFUSED = 'refused'
/** A client emits this when it is connected to a server that accepts writes again. */
export const WRITABLE = 'writable'

const FIRST_DELAY_MS = 100
/** Once the address leads to a primary, the client is connected to it within this time, in ms. */
const MAX_DELAY_MS = 5_000

/** Returns the same client. The clients that it is duplicated to behave in the same way. */
export function followPrimary(client: Redis): Redis {
  const { options } = client
  const retryDelay = options.retryStrategy
  /** How many connections in a row have led to a replica. */
  let replicas = 0
  let isOnReplica = false
  let isProbing = false

  options.reconnectOnError = (error) => {
    if (!isReadOnlyError(error)) return false
    if (!isOnReplica) {
      isOnReplica = true
      client.emit(REFUSED, 'read_only')
    }
    return options.enableOfflineQueue === false ? 1 : 2
  }
  options.retryStrategy = (times) => {
    if (!isOnReplica) return retryDelay?.(times)
    isOnReplica = false
    return Math.min(FIRST_DELAY_MS * 2 ** replicas++, MAX_DELAY_MS)
  }

  const accepted = (): void => {
    replicas = 0
    client.emit(WRITABLE)
  }
  client.on('ready', () => {
    // A client that keeps commands sends the same probe again on every connection, until a server accepts it.
    if (replicas === 0 || isProbing) return
    isProbing = true
    runScript(client, probePrimaryScript, {}, {})
      .then(accepted, (error: unknown) => {
        // Any other reply, or none in time, does not say that the server is a replica.
        if (client.status === 'ready' && !isReadOnlyError(error)) accepted()
      })
      .finally(() => {
        isProbing = false
      })
  })

  const duplicate = client.duplicate.bind(client)
  client.duplicate = (override) => {
    const own = { ...(retryDelay !== undefined && { retryStrategy: retryDelay }), ...override } as Partial<RedisOptions>
    return followPrimary(duplicate(own))
  }
  return client
}

/**
 * Rejects if no server responds that has one of these keys and accepts writes to it. A full server accepts those that free memory. Takes
 * one round trip, with one command for each server.
 */
export async function probeWrites(client: Commander, keys: readonly string[]): Promise<void> {
  if (client instanceof Redis) {
    const [anchor] = keys
    return anchor === undefined
      ? runScript(client, probePrimaryScript, {}, {})
      : runScript(client, probeNodeScript, { anchor }, {})
  }
  const byNode = new Map(keys.map((key) => [client.slots[new Command('exists', [key]).getSlot()]?.[0], key]))
  const probes = Array.from(byNode.values(), (anchor) => runScript(client, probeNodeScript, { anchor }, {}))
  await Promise.any(probes).catch((error: AggregateError) => {
    throw error.errors[0]
  })
}

/** Returns whether Redis has refused a command because it is a read-only replica. The command has then changed nothing. */
export function isReadOnlyError(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('READONLY ')
}
