// Control: what is said to all workers of a queue, over a connection of its own.
import type { Log, TaskId } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { blockingConnection } from './connection.ts'

/** Requests that nobody here could follow, for a task that may be on its way here: so many of the newest. */
const REMEMBERED = 1_000

export interface Control {
  /** Whether a cancel of this task was heard of, which was not running here then. */
  wasCancelled(id: string): boolean
  close(): void
}

/** `cancel`: false when the task does not run here. */
export function followControl(redisUrl: string, channel: string, cancel: (id: TaskId) => boolean, log: Log): Control {
  const elsewhere = new Set<string>()
  const redis: Redis = blockingConnection(redisUrl, log)
  redis.on('message', (_, id: string) => {
    if (cancel(id as TaskId)) return
    elsewhere.add(id)
    const [oldest] = elsewhere
    if (elsewhere.size > REMEMBERED && oldest !== undefined) elsewhere.delete(oldest)
  })
  // It waits for Redis, subscribes, and does so again after each loss of the connection.
  redis.subscribe(channel).catch((err: unknown) => log.debug({ err }, 'not subscribed: the connection was closed'))
  return { wasCancelled: (id) => elsewhere.delete(id), close: () => redis.disconnect() }
}
