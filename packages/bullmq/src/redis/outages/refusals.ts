// Notices that a server refuses commands for now, from the errors with which it replies to any command, and that it accepts them again.
import type { Redis } from 'ioredis'
import { type Commander, runScript } from '../../scripts/script.ts'
import { probePrimaryScript } from '../../store/scripts.ts'
import { isRefusedForNow } from './error-replies.ts'
import { REFUSED, WRITABLE } from './primary.ts'
import { REFUSALS, troubleOf } from './trouble.ts'

/** How often a server is asked whether it accepts writes again, in ms. */
const PROBE_EVERY_MS = 1_000

/** Lets a client, also of a cluster, emit `REFUSED` and `WRITABLE`. Without listeners, the client works as before. */
export function noticeRefusals(client: Commander): void {
  if (client.isCluster) client.on('+node', (node: Redis) => follow(node, client))
  else follow(client as Redis, client)
}

function follow(server: Redis, client: Commander): void {
  const { options } = server
  const reconnect = options.reconnectOnError
  let isRefused = false

  const probe = (): void => {
    runScript(server, probePrimaryScript, {}, {}).then(accepted, (error: unknown) => {
      // Any other reply than a refusal says that the server accepts writes. No reply says nothing.
      if (error instanceof Error && error.name === 'ReplyError' && !isRefusedForNow(error)) accepted()
      else if (server.status === 'end') accepted()
      else setTimeout(probe, PROBE_EVERY_MS).unref()
    })
  }
  const accepted = (): void => {
    isRefused = false
    client.emit(WRITABLE)
  }
  // ioredis calls this function for each error with which the server replies.
  options.reconnectOnError = (error) => {
    const trouble = troubleOf(error)
    if (!isRefused && trouble !== undefined && REFUSALS.has(trouble) && client.listenerCount(REFUSED) > 0) {
      isRefused = true
      client.emit(REFUSED, trouble)
      setTimeout(probe, PROBE_EVERY_MS).unref()
    }
    return reconnect?.(error) ?? false
  }
}
