// Joins the commands that a connection sends in one turn of the event loop into one write to its socket, because each write costs
// the process more than encoding the command. A producer with many callers sends many commands in a turn.
import type { Redis } from 'ioredis'

/**
 * From now on, commands are held back until the current turn of the event loop ends, and are then written together, in order. The
 * first command of a turn waits for those that the other callers send in it. A client that is closed writes what it holds back.
 */
export function joinWrites(redis: Redis): void {
  const send = redis.sendCommand.bind(redis)
  let corked: Redis['stream'] | undefined
  redis.sendCommand = (command, stream) => {
    const socket = redis.stream
    if (socket !== undefined && socket !== corked) {
      corked = socket
      socket.cork()
      setImmediate(() => {
        socket.uncork()
        if (corked === socket) corked = undefined
      })
    }
    return send(command, stream)
  }
}
