// Watches the connections of a process for its metrics: whether they are ready, and how long their commands wait for a reply.
import type { Command, Redis } from 'ioredis'
import type { Commander } from '../scripts/script.ts'
import { COMMAND_TIMED_OUT } from './command-timeouts.ts'

/**
 * One command in this number is timed, because timing takes a callback and two readings of the clock, and a short task sends only a
 * command or two. The number is prime, so that the timed ones are not always the same command of tasks that send the same few each time.
 */
const TIMED_EVERY = 13

export interface ConnectionWatch {
  /** Watches a connection until it is closed on purpose. */
  follow(redis: Commander): void
  /** Returns how many connections can send commands at the moment, and how many cannot. */
  count(): { readonly ready: number; readonly notReady: number }
}

/**
 * `onReply` is called with the seconds that a timed command took: from the call until its reply or its timeout, including the time that
 * the event loop needs to write the command and to read the reply. It must not throw or block.
 */
export function createConnectionWatch(onReply: (seconds: number) => void): ConnectionWatch {
  const followed = new Set<Commander>()
  return {
    follow(redis) {
      followed.add(redis)
      redis.on('end', () => followed.delete(redis))
      // A connection that is closed while it waits to reconnect never emits 'end'.
      const disconnect = redis.disconnect.bind(redis)
      redis.disconnect = (reconnect) => {
        if (reconnect !== true) followed.delete(redis)
        disconnect(reconnect)
      }
      timeCommands(redis, onReply)
    },
    count() {
      const ready = [...followed].filter(({ status }) => status === 'ready').length
      return { ready, notReady: followed.size - ready }
    },
  }
}

/** A client for a server ignores the third argument, which names the node that a cluster client sends the command to. */
interface Sender {
  sendCommand: (command: Command, stream?: Redis['stream'], node?: unknown) => unknown
}

function timeCommands(redis: Commander, onReply: (seconds: number) => void): void {
  const sender = redis as Sender
  const send = sender.sendCommand.bind(redis)
  // The first command is timed, so that a process that sends few of them has figures.
  let untilTimed = 1
  sender.sendCommand = (command, stream, node) => {
    if (--untilTimed > 0) return send(command, stream, node)
    untilTimed = TIMED_EVERY
    const sentAt = performance.now()
    const reply = send(command, stream, node)
    const observe = (): void => onReply((performance.now() - sentAt) / 1_000)
    // A command that could not be sent has taken no time. An error that Redis returned is a reply.
    command.promise.then(observe, (error: Error) => {
      if (error.name === 'ReplyError' || error.message === COMMAND_TIMED_OUT) observe()
    })
    return reply
  }
}
