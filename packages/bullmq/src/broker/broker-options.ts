// The options of a broker on Redis, and what it offers beyond the port that every broker implements.
import type { Log, TaskId } from '@bullpen/contract'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import type { Queue } from 'bullmq'
import type { ServerMemory } from '../admission/memory-meter.ts'
import type { LeaderTimes } from '../leader/leader.ts'
import type { ServerCheck } from '../redis/server-checks.ts'

export interface BrokerOptions {
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /**
   * The maximum size of one task's stored data, in bytes. The input counts as the codec encodes it. The API has its own limit;
   * this is a second check behind it.
   */
  readonly sizeLimit: number
  readonly log: Log
  /**
   * Encodes the inputs of the tasks that this broker enqueues, and decodes the payloads of the tasks that it returns. If a
   * payload cannot be decoded, the task is returned without that payload, and the broker logs a warning. By default, payloads are
   * stored unencoded.
   */
  readonly codec?: PayloadCodec | undefined
  /**
   * With 'checked' (the default), `enqueue` rejects with `queue_draining` if the queue's whole fleet is draining, with `redis_full` if
   * Redis's memory has reached the watermark, and with `unsafe_redis` if Redis may evict tasks. This opens one extra connection. With
   * 'open', `enqueue` accepts tasks even then, until Redis itself refuses them, and does not estimate when they start. Use 'open' in workers, whose handlers may still need to
   * enqueue child tasks.
   */
  readonly admission?: 'checked' | 'open'
  /**
   * The percentage of Redis's memory (`maxmemory`, or the machine's memory if `maxmemory` is 0) at which `enqueue` rejects with
   * `redis_full`. Defaults to 80. Together, the producers exceed it by 5 at most.
   */
  readonly memoryWatermark?: number | undefined
  /** Whether tasks may be stored on a server that may delete them, because its `maxmemory-policy` is not `noeviction`. Defaults to false. */
  readonly allowEviction?: boolean | undefined
  /**
   * The level at which problems with the server's settings are logged, such as a missing append-only file. Defaults to 'warn'. If
   * `admission` is 'open', the settings are not checked.
   */
  readonly serverProblems?: 'warn' | 'info' | undefined
  /** How often the server's settings are checked, in ms. Defaults to 300,000. Tests set this. */
  readonly checkServerEveryMs?: number
  /** How often a queue is read to estimate when its new tasks start, in ms. Defaults to 2,000. Tests set this. */
  readonly readBacklogEveryMs?: number
  /**
   * Returns the time in milliseconds since 1970, by the clock that decides when tasks are due; for example, the `now` of
   * {@link openSkewMonitor}. Defaults to the machine's clock.
   */
  readonly now?: () => number
  /**
   * Resolves once `now` is right; for example, the `measured` of {@link openSkewMonitor}. Until then, this process does not
   * become the leader, because a wrong clock would expire tasks too early. By default, `now` is taken to be right from the start.
   */
  readonly measured?: Promise<void>
  /**
   * Whether this process may become the leader of the namespace, which does the housekeeping of every queue. Defaults to true.
   * Leave this enabled in at least one process.
   */
  readonly leads?: boolean
  /** How often the leader renews its lease and surveys each queue. Tests set this. */
  readonly leaderTimes?: LeaderTimes
  /** How often this process registers its queues again for the leader, in ms. Defaults to 60,000. Tests set this. */
  readonly registerEveryMs?: number
  /** Called for each task that this process expired as the leader. The callback must not throw or block. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each waiting task that this process, as the leader, ended because of a cancellation. It is also called for a task
   * whose `cancel` rejected because Redis did not respond in time, if the broker learns within a minute that Redis did cancel the
   * task. The callback must not throw or block.
   */
  readonly onCancelled?: (cancelled: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each task that `enqueue` refused before anything was sent to Redis, with the code of the error. The callback must not
   * throw or block.
   */
  readonly onRefused?: (refused: { readonly queue: string; readonly code: string }) => void
  /**
   * Called for each duty of the housekeeping that failed in this process as the leader, except if Redis was not reachable. The
   * broker also logs a warning. The callback must not throw or block.
   */
  readonly onHousekeepingFailed?: (failure: { readonly queue: string; readonly duty: string }) => void
}

/** The broker, together with BullMQ's own queue objects, which Bull Board needs. */
export interface BullmqBroker extends Broker {
  /** Returns whether this process leads the namespace. Takes no round trip. */
  isLeading(): boolean
  /**
   * Checks that Redis does not evict tasks, unless that is allowed. Takes up to one round trip for each server.
   *
   * @throws BullpenError `unsafe_redis`.
   */
  checkServer(): Promise<void>
  /**
   * Returns how much memory Redis uses, as of up to 10 s ago, or undefined if that is unknown or `admission` is 'open'. In a cluster, it
   * is the node with the least room. Takes no round trip.
   */
  memory(): Pick<ServerMemory, 'usedBytes' | 'limitBytes'> | undefined
  /**
   * Returns whether each check of the server's settings has found a problem, as of up to 5 min ago. Checks that Redis does not permit are
   * missing, as are all of them if `admission` is 'open'. Takes no round trip.
   */
  serverProblems(): ReadonlyMap<ServerCheck, boolean>
  readonly boardQueues: readonly Queue[]
}
