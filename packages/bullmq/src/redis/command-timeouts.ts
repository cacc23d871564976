// Limits how long a connection's commands wait for their replies, with a single timer for all of them. ioredis's own option,
// `commandTimeout`, starts a timer for every command, which adds about 2 µs of CPU time to each enqueue, and rejects commands whose
// replies have arrived while the event loop was blocked.
import type { Cluster, Command } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { type ReplyTimer, startReplyTimer } from './reply-timer.ts'

/** The error's message, which is the same as in ioredis. */
export const COMMAND_TIMED_OUT = 'Command timed out'

/** The number of settled commands that may accumulate at the beginning of the list before the list is copied without them. */
const MAX_SETTLED = 1_000

interface Pending {
  readonly command: Command
  /** On the monotonic clock, in ms. */
  readonly expiresAt: number
}

/**
 * Rejects each of this client's commands that receives no reply within `ms`. Redis may still execute the command, and ioredis
 * discards the late reply. For a cluster, the time includes the redirections of a command, but those of a pipeline begin it again.
 * The timer does not keep the process alive.
 */
export function limitCommands(redis: Commander, ms: number): void {
  const send: Cluster['sendCommand'] = redis.sendCommand.bind(redis)
  /** In the order in which the commands expire. Redis replies in this order, so the settled commands are at the beginning. */
  let pending: (Pending | undefined)[] = []
  let settled = 0
  let timer: ReplyTimer | undefined

  const dropSettled = (): void => {
    // If a settled command stayed in the list until the list is copied, it would survive a garbage collection.
    while (pending[settled]?.command.isSettled) pending[settled++] = undefined
    if (settled === 0 || (settled < pending.length && settled < MAX_SETTLED)) return
    pending = pending.slice(settled)
    settled = 0
  }

  const start = (): void => {
    const next = pending[settled]
    // The time may have passed while other commands expired, and Node warns of a negative delay.
    timer = next && startReplyTimer(Math.max(0, next.expiresAt - performance.now()), expire)
  }

  const expire = (): void => {
    const now = performance.now()
    for (const each of pending) {
      if (each === undefined) continue
      if (each.expiresAt > now) break
      if (!each.command.isSettled) each.command.reject(new Error(COMMAND_TIMED_OUT))
    }
    dropSettled()
    start()
  }

  // A client rejects its pending commands when it ends.
  redis.on('end', () => {
    timer?.cancel()
    timer = undefined
  })
  const sendLimited: Cluster['sendCommand'] = (command, stream, node) => {
    // When ioredis has reconnected, it sends every command again that has received no reply, even if its caller has received an
    // error long ago.
    if (command.isSettled) return command.promise
    const reply = send(command, stream, node)
    dropSettled()
    // A command that ioredis sends again is in the list twice. Its first entry expires first.
    if (!command.isSettled) pending.push({ command, expiresAt: performance.now() + ms })
    if (timer === undefined) start()
    return reply
  }
  redis.sendCommand = sendLimited
}
