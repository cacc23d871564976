// Joins the commands that a process sends in quick succession, because each write to the socket costs the process a system call. A
// producer with many callers sends many commands in one turn of the event loop, and so does a worker that gets many replies at once.
//
// Each command keeps its own reply and its own error. ioredis's automatic pipelining is different: it sends the commands as a
// pipeline, which costs more than it saves.
import type { Redis } from 'ioredis'

/**
 * How many commands are written together. If all commands of a turn were, Redis would have nothing to do while the process prepares
 * them: with 64 callers, that was a third less throughput. Eight already save most of the system calls.
 */
const MAX_JOINED = 8

/**
 * How long commands are held back at most.
 *
 * - `turn`: until the current turn of the event loop ends, which also joins the commands of several requests.
 * - `callback`: until the current callback and the promises that it has resolved have run. The end of an attempt is therefore not
 *   held back while another callback runs, which may contain a handler that takes long.
 */
export type JoinedUntil = 'turn' | 'callback'

const AT_END: Readonly<Record<JoinedUntil, (write: () => void) => void>> = {
  turn: (write) => void setImmediate(write),
  // A tick that is scheduled while promises are settled runs once there are no more of them to settle.
  callback: (write) => process.nextTick(write),
}

/**
 * Holds the commands of this client back until there are eight of them or the given time has come, and then writes them in order. If the connection is lost before that, ioredis sends the commands again on the next one, as it does with all
 * commands that have no reply.
 */
export function joinWrites(redis: Redis, until: JoinedUntil): void {
  const send = redis.sendCommand.bind(redis)
  let corked: Redis['stream'] | undefined
  let held = 0
  redis.sendCommand = (command, stream) => {
    const socket = redis.stream
    // A client that has not connected yet has no socket.
    if (socket === undefined) return send(command, stream)
    if (socket !== corked) {
      corked = socket
      held = 0
      socket.cork()
      AT_END[until](() => {
        if (corked === socket) corked = undefined
        socket.uncork()
      })
    }
    const reply = send(command, stream)
    held++
    if (held === MAX_JOINED) {
      held = 0
      socket.uncork()
      socket.cork()
    }
    return reply
  }
}
