// Joins the commands that a process sends in quick succession, because each write to the socket costs a system call. A producer
// with many callers sends many commands in one turn of the event loop, as does a worker that receives many replies at once.
//
// Each command keeps its own reply and its own error. ioredis's automatic pipelining is different: it sends the commands as a
// pipeline, which costs more than it saves.
import type { Redis } from 'ioredis'

/**
 * How many commands are written together at most. If all commands of a turn were written together, Redis would be idle while the
 * process prepares them, which lowered the throughput with 64 callers by a third. With 64 requests at once, the throughput was
 * highest with 4 to 8 commands, and 4% lower if the number doubled with each write of a turn.
 */
const MAX_JOINED = 5
/** How many bytes may be held back. A batch of moves or adds, which is one command, has more, and is written at once. */
const MAX_HELD_BYTES = 2_048

/**
 * The longest time for which commands are held back.
 *
 * - `turn`: until the current turn of the event loop ends, which also joins the commands of several requests.
 * - `callback`: until the current callback and the promises that it has resolved have run. A command that ends an attempt is
 *   therefore not held back while another callback runs a handler that takes long.
 */
export type JoinedUntil = 'turn' | 'callback'

const AT_END: Readonly<Record<JoinedUntil, (write: () => void) => void>> = {
  turn: (write) => void setImmediate(write),
  // A tick that is scheduled by a promise's callback runs once no more such callbacks are pending.
  callback: (write) => process.nextTick(write),
}

/**
 * Holds back this client's commands until there are enough of them or the given time has come, and then writes them in order. If
 * the connection is lost before then, ioredis sends the commands on the next connection, as it does with every command that has
 * no reply.
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
    if (held === MAX_JOINED || socket.writableLength > MAX_HELD_BYTES) {
      held = 0
      socket.uncork()
      socket.cork()
    }
    return reply
  }
}
