// Joins the commands that a producer sends in one turn of the event loop into one write to the socket, because each write costs
// the process a system call. A producer with many callers sends many commands in one turn.
//
// Each command keeps its own reply and its own error. ioredis's automatic pipelining is different: it sends the commands as a
// pipeline, which costs more than it saves.
import type { Redis } from 'ioredis'

/**
 * Holds the commands of this client back until the current turn of the event loop ends, and then writes them in order. If the
 * connection is lost before that, ioredis sends the commands again on the next one, as it does with all commands without a reply.
 */
export function joinWrites(redis: Redis): void {
  const send = redis.sendCommand.bind(redis)
  let corked: Redis['stream'] | undefined
  redis.sendCommand = (command, stream) => {
    const socket = redis.stream
    // A client that has not connected yet has no socket.
    if (socket !== undefined && socket !== corked) {
      corked = socket
      socket.cork()
      setImmediate(() => {
        if (corked === socket) corked = undefined
        socket.uncork()
      })
    }
    return send(command, stream)
  }
}
