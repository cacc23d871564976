// Defines the options of a broker on Redis, and the methods that it has in addition to every broker's port.
import type { GroupResult, Log, QueueLimits, TaskId } from '@bullpen/contract'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import type {
  DefinedEnqueueRate,
  EnqueueRates,
  LeadershipFacts,
  LostTasksFacts,
  QueueHead,
  ServerFacts,
  UnreachableNode,
} from '@bullpen/engine/internal'
import type { Job, Queue } from 'bullmq'
import type { ServerMemory } from '../admission/memory-meter.ts'
import type { LeaderTimes } from '../leader/leader.ts'
import type { BoardPage } from '../queries/board-jobs.ts'
import type { EndCounts } from '../queries/recent-ends.ts'
import type { ConnectionWatch } from '../redis/connection-watch.ts'
import type { DiskWrite } from '../redis/server/last-writes.ts'
import type { ServerCheck } from '../redis/server/server-checks.ts'
import type { RunChanged } from '../runs/run-deliveries.ts'

export interface BrokerOptions {
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /**
   * The maximum size of one task's stored data, in bytes, after the codec has encoded the input. The API checks a limit of its
   * own before this one.
   */
  readonly sizeLimit: number
  readonly log: Log
  /** Watches the connection for the process's metrics. By default, nothing is measured. */
  readonly watch?: ConnectionWatch | undefined
  /**
   * Encodes the inputs of the tasks that this broker enqueues, and decodes the payloads of the tasks that it returns. If a
   * payload cannot be decoded, the task is returned without that payload, and the broker logs a warning. By default, payloads are
   * stored unencoded.
   */
  readonly codec?: PayloadCodec | undefined
  /**
   * With 'checked' (the default), `enqueue` rejects with `queue_draining` if the queue's whole fleet is draining, with
   * `redis_full` if Redis's memory has reached the watermark, and with `unsafe_redis` if Redis may evict tasks. Checking opens
   * one extra connection. With 'open', `enqueue` accepts tasks in all of these cases, until Redis itself refuses them, and does
   * not estimate when they start. Use 'open' in workers, whose handlers may still need to enqueue child tasks.
   */
  readonly admission?: 'checked' | 'open'
  /**
   * The percentage of Redis's memory (`maxmemory`, or the machine's memory if `maxmemory` is 0) at which `enqueue` rejects with
   * `redis_full`. Defaults to 80. All producers together exceed this percentage by at most 5 percentage points.
   */
  readonly memoryWatermark?: number | undefined
  /**
   * The limit for the unfinished tasks of one queue, as a percentage of Redis's memory. The limit applies to queues for which
   * neither the definition nor a command sets `maxBytes`, unless the memory is unknown. Defaults to 50.
   */
  readonly queueMemoryShare?: number | undefined
  /**
   * The percentage of Redis's memory that the records of idempotency keys may take. Beyond this share, `enqueue` rejects with
   * `idempotency_full` if a task's idempotency key has no record yet. Defaults to 25. All producers together may exceed the share
   * by what they store within 2 s. In a cluster, the share applies to each queue separately.
   */
  readonly idempotencyMemoryShare?: number | undefined
  /**
   * How long `enqueue` waits until a replica has a task with `durability: 'replicated'`, in ms. After that, it rejects with
   * `not_replicated`. Defaults to 1,000.
   */
  readonly replicationTimeoutMs?: number | undefined
  /**
   * Whether tasks may be stored on a server that may delete them because its `maxmemory-policy` is not `noeviction`. Defaults to
   * false.
   */
  readonly allowEviction?: boolean | undefined
  /**
   * The level at which problems with the server's settings are logged, such as a missing append-only file. Defaults to 'warn'. If
   * `admission` is 'open', the settings are not checked.
   */
  readonly serverProblems?: 'warn' | 'info' | undefined
  /** Returns how fast each API key may enqueue tasks, unless a command has set another rate. By default, there are no limits. */
  readonly enqueueRateOf?: DefinedEnqueueRate
  /** How often the server's settings are checked, in ms. Defaults to 300,000. Tests set this. */
  readonly checkServerEveryMs?: number
  /** How often a queue is read to estimate when its new tasks start, in ms. Defaults to 2,000. Tests set this. */
  readonly readBacklogEveryMs?: number
  /** How often the leader looks for schedules in trouble, in ms. Defaults to 30,000. Tests set this. */
  readonly watchSchedulesEveryMs?: number
  /**
   * Returns the time in milliseconds since 1970, by the clock that decides when tasks are due; for example, the `now` of
   * {@link openSkewMonitor}. Defaults to the machine's clock.
   */
  readonly now?: () => number
  /**
   * Resolves once `now` is right; for example, the `measured` of {@link openSkewMonitor}. Until then, this process does not
   * become the leader, because a wrong clock would expire tasks too early. By default, `now` is assumed to be right from the
   * start.
   */
  readonly measured?: Promise<void>
  /**
   * Whether this process may become the leader of the namespace, which does the housekeeping of every queue. Defaults to true.
   * Leave this enabled in at least one process.
   */
  readonly leads?: boolean
  /** How often the leader renews its lease and surveys each queue. Tests set this. */
  readonly leaderTimes?: LeaderTimes
  /** How long a command waits for its reply, in ms. Defaults to 800. Tests of something else set it, so that a busy machine fails none. */
  readonly commandTimeoutMs?: number
  /** How often this process registers its queues again for the leader, in ms. Defaults to 60,000. Tests set this. */
  readonly registerEveryMs?: number
  /** Called for each task that this process expired as the leader. The callback must not throw or block. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each waiting task that this process, as the leader, ended because of a cancellation. Also called if a task's
   * `cancel` rejected because Redis did not respond in time, but the broker learns within a minute that Redis cancelled the task
   * after all. The callback must not throw or block.
   */
  readonly onCancelled?: (cancelled: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /** Called for each task that this process, as the leader, enqueued for a schedule. The callback must not throw or block. */
  readonly onScheduled?: (scheduled: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each follow-up task that this process has enqueued because another task has ended. The callback must not throw or
   * block.
   */
  readonly onForwarded?: (forwarded: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * Called for each group that has ended because of what this process has reported to it. If a process dies at that moment, no process
   * may be called. The callback must not throw or block.
   */
  readonly onGroupEnded?: (result: GroupResult) => void
  /**
   * Called when this process has counted items of a pipeline's run, or has ended the run. If a process dies at that moment, no process may
   * be called. The callback must not throw or block.
   */
  readonly onRunChanged?: (changed: RunChanged) => void
  /**
   * Called for each task that `enqueue` refused because of the state of the queue or of Redis, unless the queue was full. `code`
   * is the error's code. The callback must not throw or block.
   */
  readonly onRefused?: (refused: { readonly queue: string; readonly code: string }) => void
  /**
   * Called when Redis has lost tasks of a queue that this process had acknowledged within the last minute, with the number of those that no
   * other process has reported. The broker also logs an error. The callback must not throw or block.
   */
  readonly onLost?: (lost: { readonly queue: string; readonly tasks: number }) => void
  /**
   * Called for each worker that this process, as the leader, finds to be lost. The broker also logs a warning. The callback must not throw
   * or block.
   */
  readonly onWorkerLost?: () => void
  /**
   * Called for each housekeeping duty that fails while this process is the leader, unless the failure is that Redis was
   * unreachable. The broker also logs a warning. The callback must not throw or block.
   */
  readonly onHousekeepingFailed?: (failure: { readonly queue: string; readonly duty: string }) => void
}

/** The broker, together with BullMQ's own queue objects, which Bull Board needs. */
export interface BullmqBroker extends Broker {
  /**
   * Forwards what follows from the ends of this queue's tasks, soon. Returns at once and never throws. If this process dies or cannot
   * reach a target, the leader does it.
   */
  forward(queue: string): void
  /** Returns whether this process leads the namespace. Does not query Redis. */
  isLeading(): boolean
  /**
   * Checks that Redis does not evict tasks, unless that is allowed. Takes up to one round trip for each server.
   *
   * @throws BullpenError `unsafe_redis`.
   */
  checkServer(): Promise<void>
  /**
   * Returns which task has waited for the longest time, and how many are blocked. Takes one round trip. @throws BullpenError
   * `queue_not_found`.
   */
  head(queue: string): Promise<QueueHead>
  /**
   * Returns how many acknowledged tasks Redis is known to have lost within the last day, or undefined if it has lost none. Takes one round
   * trip. @throws BullpenError `queue_not_found`.
   */
  lostTasks(queue: string): Promise<LostTasksFacts | undefined>
  /**
   * Counts the tasks of a queue that died or completed after `since`, in ms since 1970, and how many of the dead ones have each
   * fingerprint. Takes one round trip.
   */
  recentEnds(queue: string, since: number, fingerprints: readonly string[]): Promise<EndCounts>
  /**
   * Returns the limits of a queue whose definition has the limits `defined`: those that a command has set replace them, and a share of
   * Redis's memory limits the bytes of every queue without such a limit. If `admission` is 'open', nothing is limited. The result is
   * up to 2 s old. Does not query Redis.
   */
  limitsOf(queue: string, defined: QueueLimits | undefined): QueueLimits
  /**
   * Returns how much memory Redis used when it was last read, at most 10 s ago. Returns undefined if that is unknown or if
   * `admission` is 'open'. In a cluster, returns the memory of the node with the least room. Does not query Redis.
   */
  memory(): Pick<ServerMemory, 'usedBytes' | 'limitBytes'> | undefined
  /**
   * Returns how many bytes the records of idempotency keys took at the last reading, at most 1 min ago, assuming 150 bytes for
   * each. Returns undefined before the first reading, or if `admission` is 'open'. Does not query Redis.
   */
  idempotencyBytes(): number | undefined
  /**
   * Returns whether each check of the server's settings found a problem when it last ran, at most 5 min ago. Checks that Redis
   * does not permit are left out. If `admission` is 'open', the map is empty. Does not query Redis.
   */
  serverProblems(): ReadonlyMap<ServerCheck, boolean>
  /**
   * Returns whether the last time that Redis wrote its append-only file, a rewrite of it or a snapshot to its disk failed. In a cluster, a
   * write counts as failed if it failed on any server. Kinds about which Redis does not report, or INFO if Redis does not permit it, are
   * left out. Takes one round trip.
   */
  lastWrites(): Promise<ReadonlyMap<DiskWrite, boolean>>
  /**
   * Returns whether a process leads the namespace, and how often the leadership has changed as this process has seen it. If no process
   * leads, waits up to 4 s for the next leader, with four round trips per second. Otherwise takes one round trip.
   */
  leadership(): Promise<LeadershipFacts>
  /**
   * Returns the nodes of a Redis Cluster that have slots and do not respond within 0.8 s, with the queues of this broker that they have.
   * Takes one round trip of a cluster, and none of a single server.
   */
  unreachableNodes(): Promise<readonly UnreachableNode[]>
  /**
   * Returns what the servers report about themselves, and how long a round trip takes. In a cluster, only servers that hold data are
   * described. Takes six round trips.
   */
  servers(): Promise<readonly ServerFacts[]>
  /**
   * Limits how fast each API key may enqueue tasks. `enqueue` does not check this limit, because it does not know whose request
   * it serves.
   */
  readonly rates: EnqueueRates
  readonly boardQueues: readonly Queue[]
  /**
   * Returns the jobs of one page of a queue on the board.
   *
   * @throws BullpenError `queue_not_found`.
   */
  boardJobs(page: BoardPage): Promise<readonly Job[]>
}
