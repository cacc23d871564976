// Control: what is said to all workers of a queue, over a connection of its own.
import type { Log, TaskId } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { blockingConnection } from '../connection.ts'
import type { QueueKeys } from '../keys.ts'

/** Requests that nobody here could follow, for a task that may be on its way here: so many of the newest. */
const REMEMBERED = 1_000

export interface CancelSubscriber {
  /** Whether a cancel of this task was heard of, which was not running here then. */
  wasCancelled(id: string): boolean
  close(): void
}

export interface ControlOptions {
  readonly redisUrl: string
  readonly keys: QueueKeys
  /** False when the task does not run here. */
  readonly cancel: (id: TaskId) => boolean
  /** There may be a new cancel rule: one is told of, or may have been while nobody listened. */
  readonly onRule: () => void
  readonly log: Log
}

export function openCancelSubscriber({ redisUrl, keys, cancel, onRule, log }: ControlOptions): CancelSubscriber {
  const elsewhere = new Set<string>()
  const redis: Redis = blockingConnection(redisUrl, log)
  redis.on('message', (channel: string, id: string) => {
    if (channel === keys.cancelChannel) {
      onRule()
      return
    }
    if (cancel(id as TaskId)) return
    elsewhere.add(id)
    const [oldest] = elsewhere
    if (elsewhere.size > REMEMBERED && oldest !== undefined) elsewhere.delete(oldest)
  })
  // It waits for Redis, subscribes, and does so again after each loss of the connection.
  redis.on('ready', onRule)
  redis
    .subscribe(keys.control, keys.cancelChannel)
    .catch((err: unknown) => log.debug({ err }, 'not subscribed: the connection was closed'))
  return { wasCancelled: (id) => elsewhere.delete(id), close: () => redis.disconnect() }
}
