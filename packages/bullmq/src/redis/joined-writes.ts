// Joins the commands that a process sends in quick succession, because each write to the socket costs a system call. A producer
// with many callers sends many commands in one turn of the event loop, as does a worker that receives many replies at once.
//
// Each command keeps its own reply and its own error. ioredis's automatic pipelining is different: it sends the commands as a
// pipeline, which costs more than it saves.
import type { Redis } from 'ioredis'

/**
 * How many commands are written together the first time, and by which factor that number grows with every further write before
 * the given time comes. If all of a turn's commands were written together, Redis would be idle while the process prepares them,
 * which lowered the throughput with 64 callers by a third. Redis takes longer to run a command that adds a task than the process
 * takes to prepare it, so it still has work from one write when the next one, twice as large, arrives.
 */
const FIRST_JOINED = 8
const GROWTH = 2

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
  let maxHeld = FIRST_JOINED
  redis.sendCommand = (command, stream) => {
    const socket = redis.stream
    // A client that has not connected yet has no socket.
    if (socket === undefined) return send(command, stream)
    if (socket !== corked) {
      corked = socket
      held = 0
      maxHeld = FIRST_JOINED
      socket.cork()
      AT_END[until](() => {
        if (corked === socket) corked = undefined
        socket.uncork()
      })
    }
    const reply = send(command, stream)
    held++
    if (held === maxHeld) {
      held = 0
      maxHeld *= GROWTH
      socket.uncork()
      socket.cork()
    }
    return reply
  }
}
