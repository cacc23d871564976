// Limits how long a connection's commands wait for their replies, with one timer for all of them. ioredis uses a timer for each
// command, which costs a producer more than a tenth of an enqueue's CPU time.
import type { Command, Redis } from 'ioredis'

interface Pending {
  readonly command: Command
  /** On the monotonic clock, in ms. */
  readonly expiresAt: number
}

/**
 * From now on, a command is rejected with ioredis's error, `Command timed out`, if no reply has arrived within `ms`. Redis may
 * still execute the command.
 */
export function limitCommands(redis: Redis, ms: number): void {
  const send = redis.sendCommand.bind(redis)
  /** In the order in which they expire. Redis replies in the same order, so that the replies are found at the beginning. */
  let pending: Pending[] = []
  let first = 0
  let timer: NodeJS.Timeout | undefined

  const dropSettled = (): void => {
    while (first < pending.length && pending[first]?.command.isSettled) first++
    if (first === pending.length || first > 1000) {
      pending = pending.slice(first)
      first = 0
    }
  }
  const expire = (): void => {
    timer = undefined
    const now = performance.now()
    for (const { command, expiresAt } of pending) {
      if (expiresAt > now) break
      if (!command.isSettled) command.reject(new Error('Command timed out'))
    }
    dropSettled()
    arm()
  }
  const arm = (): void => {
    const next = pending[first]
    if (next === undefined) return
    timer = setTimeout(expire, Math.max(1, next.expiresAt - performance.now()))
    timer.unref()
  }
  redis.sendCommand = (command, stream) => {
    const answer = send(command, stream)
    dropSettled()
    if (!command.isSettled) {
      pending.push({ command, expiresAt: performance.now() + ms })
      if (timer === undefined) arm()
    }
    return answer
  }
}
