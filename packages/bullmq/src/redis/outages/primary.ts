// Keeps a client away from replicas. After a failover, the old primary is a read-only replica, which refuses every write. The client
// then reconnects, because its address may lead to the new primary by now. As long as the address leads to a replica, which it also does
// if it is the wrong one, the client reconnects less and less often.
//
// If the client keeps commands while it is not connected, a refused command is sent again on the next connection. Otherwise, it is
// rejected.
import { Redis, type RedisOptions } from 'ioredis'
import { probePrimary } from '../../scripts/primary/probe-primary.ts'
import { type Commander, runScript } from '../../scripts/script.ts'

/** A client emits this once for each connection whose server refuses a write because it is a replica. */
export const READ_ONLY = 'readOnly'
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
      client.emit(READ_ONLY)
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
    runScript(client, probePrimary, {}, {})
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

/** Rejects if the server does not respond, or if it is a read-only replica, which also responds to PING. Takes one round trip. */
export async function pingPrimary(client: Commander): Promise<void> {
  // A replica of a cluster refuses other commands as well.
  await Promise.all([client.ping(), client instanceof Redis ? probe(client) : undefined])
}

async function probe(client: Redis): Promise<void> {
  await runScript(client, probePrimary, {}, {}).catch((error: unknown) => {
    // Any other reply does not say that the server is a replica. If there is no reply, the ping fails, too.
    if (isReadOnlyError(error)) throw error
  })
}

/** Returns whether Redis has refused a command because it is a read-only replica. The command has then changed nothing. */
export function isReadOnlyError(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('READONLY ')
}
