// Declares the memory broker: its options, and what it can do besides what every broker does.
import type { CallOptions, InputOf, PerConcurrencyKey, TaskDefinition, TaskId } from '@bullpen/contract'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import type { Breakers, Candidates, Clock, PoolOptions, Retention } from '@bullpen/engine/internal'
import type { ConcurrencyKeyLimitChange } from './store/key-limits.ts'

export interface MemoryBrokerOptions {
  readonly clock: Clock
  /** The queues that exist. A task for any other queue is rejected with `queue_not_found`. By default, every queue exists. */
  readonly queues?: readonly string[]
  /** Encodes the payloads that the broker stores. By default, they are stored as they are. */
  readonly codec?: PayloadCodec | undefined
  /** The maximum size of a task's stored data, in bytes, including its encoded input. By default, there is no limit. */
  readonly sizeLimit?: number
  /** The time from the death of a worker or the loss of a lock until its tasks are recovered, in ms. Defaults to 6,000. */
  readonly stallMs?: number
  /** How often the broker looks for tasks whose queue timeout has passed, in ms. Defaults to 2,000. */
  readonly sweepMs?: number
  /** How long ended tasks are kept. By default, they are kept until the broker is closed. */
  readonly retention?: Retention | undefined
  /** Called with each task that a sweep has expired. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
}

export interface MemoryConsumerOptions {
  readonly queue: string
  /** How many tasks may be fetched at once, until the pool changes this number. */
  readonly concurrency: number
  /** The name of the pool's worker, which {@link MemoryBroker.kill} accepts. Defaults to 'memory'. */
  readonly worker?: string
  /** The tasks that may be fetched. By default, all tasks of the queue. */
  readonly candidates?: Candidates
  /**
   * The limits of concurrency keys in the catalogue, which replace those of the consumers that were opened before. `memoryPool`
   * passes those of its catalogue. By default, there are none.
   */
  readonly keyLimits?: PerConcurrencyKey | undefined
  /**
   * The permits of the queue and the caps of its definitions in the catalogue, by the names of the limiters, such as `permits:db` and
   * `task:data.load`. As with `keyLimits`, the consumer that was opened last decides. By default, there are none.
   */
  readonly capacities?: Readonly<Record<string, number>> | undefined
}

/** A broker that behaves like the Redis broker and can be made to fail. */
export interface MemoryBroker extends Broker {
  /** Enqueues a task and returns its id. @throws BullpenError `invalid_request` if the options contradict each other. */
  add<D extends TaskDefinition>(definition: D, input: InputOf<D>, call?: CallOptions): Promise<TaskId>
  /**
   * Sets limits of a concurrency key of a queue or, without a key, of all its keys, as the command `limit` does. They replace those of the
   * catalogue until they are set to `none`.
   */
  limitKeys(queue: string, limits: ConcurrencyKeyLimitChange, concurrencyKey?: string): void
  /**
   * Sets how many permits of a queue there are, as the command `limit` does. The numbers replace those of the catalogue until
   * they are set to `none`.
   */
  limitPermits(queue: string, permits: Readonly<Record<string, number | 'none'>>): void
  /** Sets how many tasks of a definition may run at once, as the command `limit` does, until it is set to `none`. */
  limitDefinition(queue: string, task: string, concurrency: number | 'none'): void
  /** Shows and sets the circuit breakers of a queue. */
  readonly breakers: Breakers
  /** Creates the consumer for a pool. */
  consumer(options: MemoryConsumerOptions): PoolOptions['consumer']
  /** Makes the store unreachable: every method rejects with `redis_unavailable`, and pools do not fetch tasks. */
  fail(): void
  /** Makes the store reachable again. */
  recover(): void
  /** Makes fetching fail in every pool. Each pool then restarts its consumer on its own. */
  failConsumers(): void
  /** Removes a running task's lock. The task's pool is notified, and the task is started again after `stallMs`. */
  loseLock(id: TaskId): void
  /** Kills a worker, as SIGKILL would. Its pools no longer write anything, and their tasks are recovered after `stallMs`. */
  kill(worker: string): void
}
