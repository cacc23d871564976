// Opens and closes the objects that a broker holds for each of its queues.
import { BullpenError, type Log } from '@bullpen/contract'
import { readTaskId } from '@bullpen/contract/internal'
import { Queue } from 'bullmq'
import { blockingConnection, COMMAND_TIMEOUT_MS, replicationConnection } from '../connection.ts'
import { prefixOf, type QueueKeys, queueKeys } from '../keys.ts'
import { openStreamFollower, type StreamFollower } from '../redis/stream-follower.ts'
import type { RedisAccess } from '../schema.ts'
import type { Commander } from '../scripts/script.ts'
import { type AddAllTasks, type AddTask, allTasksAdder, taskAdder } from '../store/add.ts'
import { backendFactory } from '../store/backend.ts'
import { openReplicatedAdds, type ReplicatedAdds } from '../store/replicated-adds.ts'
import { type CompletionListener, openCompletionListener } from '../waiting/completion-listener.ts'

export interface QueueHandles {
  readonly name: string
  readonly queue: Queue
  readonly addTask: AddTask
  readonly addAllTasks: AddAllTasks
  readonly keys: QueueKeys
  readonly completions: CompletionListener
}

/** How a broker reaches the data of its queues. */
export interface QueueAccess extends RedisAccess {
  readonly queues: QueueTable
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
}

/** Returns a function that reads something of the queue with the given name. It rejects with `queue_not_found`. */
export const queueReader =
  ({ queues, call }: Pick<QueueAccess, 'queues' | 'call'>) =>
  <More extends readonly unknown[], Found>(read: (keys: QueueKeys, ...more: More) => Promise<Found>) =>
  async (queue: string, ...more: More): Promise<Found> => {
    const { keys } = queues.of(queue)
    return call(() => read(keys, ...more))
  }

export interface QueueTable {
  readonly all: readonly QueueHandles[]
  /** Follows the queues' streams. */
  readonly follower: StreamFollower
  /** Returns a queue's handles. @throws BullpenError `queue_not_found`. */
  of(queue: string): QueueHandles
  /** Returns the handles of a task's queue, or undefined if the id is malformed or names an unknown queue. */
  ofTask(id: string): QueueHandles | undefined
  close(): Promise<void>
}

export interface QueueTableOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  readonly now: () => number
  readonly log: Log
  /** How long an enqueue waits for a replica, in ms. Defaults to 1,000. */
  readonly replicationTimeoutMs?: number | undefined
  readonly commandTimeoutMs?: number | undefined
}

/** How long an enqueue waits for a replica by default, in ms. */
const REPLICATION_TIMEOUT_MS = 1_000

/** Opens a broker's queues without waiting for Redis or writing to it. */
export function openQueueTable(options: QueueTableOptions): QueueTable {
  const { redis, redisUrl, log } = options
  const { replicationTimeoutMs: waitMs = REPLICATION_TIMEOUT_MS, commandTimeoutMs: timeoutMs = COMMAND_TIMEOUT_MS } =
    options
  const replicated = openReplicatedAdds({
    connect: () => replicationConnection(redisUrl, log),
    waitMs,
    timeoutMs,
  })
  const follower = openStreamFollower({ redis, connect: () => blockingConnection(redisUrl, log), log })
  const handles = new Map(options.queues.map((name) => [name, openQueueHandles(name, options, follower, replicated)]))
  const all = [...handles.values()]
  return {
    all,
    follower,
    of(queue) {
      const found = handles.get(queue)
      if (found !== undefined) return found
      throw new BullpenError(
        'queue_not_found',
        `no task in the catalogue uses queue '${queue}'; the queues are ${options.queues.join(', ')}`,
      )
    },
    ofTask: (id) => handles.get(readTaskId(id)?.queue ?? ''),
    async close() {
      for (const { completions } of all) completions.close()
      follower.close()
      replicated.close()
      await Promise.allSettled(all.map(({ queue }) => queue.close()))
    },
  }
}

/** Opens BullMQ's object for a queue, without waiting for Redis or writing to it. The object uses the connection `redis`. */
export function openQueue(
  name: string,
  { redis, namespace, now }: Pick<QueueTableOptions, 'redis' | 'namespace' | 'now'>,
): Queue {
  const queueOptions = {
    connection: redis,
    prefix: prefixOf(namespace, name),
    // If a queue waits for Redis when it is created and Redis becomes reachable only later, the queue stays broken.
    skipWaitingForReady: true,
    skipVersionCheck: true,
    // Nothing is written before the namespace's schema is checked.
    skipMetasUpdate: true,
  }
  const queue = new Queue(name, queueOptions, backendFactory({ now }))
  queue.on('error', () => {}) // The outage reporter watches this connection and logs its errors.
  return queue
}

function openQueueHandles(
  name: string,
  options: QueueTableOptions,
  follower: StreamFollower,
  replicated: ReplicatedAdds,
): QueueHandles {
  const { redis, namespace } = options
  const keys = queueKeys(namespace, name)
  const queue = openQueue(name, options)
  return {
    name,
    queue,
    addTask: taskAdder(redis, keys.base, replicated),
    addAllTasks: allTasksAdder(redis, keys.base, replicated),
    keys,
    completions: openCompletionListener({ redis, keys, follower }),
  }
}
