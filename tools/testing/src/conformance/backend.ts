// Defines what the suites need from a backend: the broker itself, consumers for pools, and ways to inject faults.
import type { BreakersOf, PerConcurrencyKey, TaskId } from '@bullpen/contract'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import type { Breakers, Candidates, Clock, PoolOptions, Retention, WaitPool } from '@bullpen/engine/internal'
import type { ConcurrencyKeyLimitChange } from '@bullpen/testkit'

export interface BackendOptions {
  readonly queues: readonly string[]
  readonly sizeLimit: number
  readonly codec?: PayloadCodec | undefined
  /** The circuit breakers of the first queue. By default, it has none. */
  readonly breakers?: BreakersOf | undefined
  /** How long ended tasks are kept. By default, they are kept for the whole test. */
  readonly retention?: Retention | undefined
  readonly onExpired: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /**
   * With `quick`, a lost lock and a schedule in trouble are noticed within a second. `usual` stands for the production
   * settings, which put less load on Redis.
   */
  readonly locks: 'quick' | 'usual'
  /** The clock for a broker that runs on the test's clock. Other brokers run in real time. */
  readonly clock: Clock
}

/** A broker that only one test uses. */
export interface Backend {
  readonly broker: Broker
  readonly breakers: Breakers
  /**
   * Returns the consumer for a pool on the first queue, in the named worker. `candidates`, if given, are the tasks that it may fetch.
   * `keyLimits` and `capacities` are the limits of concurrency keys and of limiters in the worker's catalogue.
   */
  consumer(options: {
    readonly concurrency: number
    readonly worker: string
    readonly candidates?: Candidates
    readonly keyLimits?: PerConcurrencyKey | undefined
    readonly capacities?: Readonly<Record<string, number>> | undefined
  }): PoolOptions['consumer']
  /** Sets limits of a concurrency key of the first queue or, without `key`, of every key, as a command does. */
  limitKeys(limits: ConcurrencyKeyLimitChange, key?: string): Promise<void>
  /** Sets how many permits of the first queue there are, as a command does. */
  limitPermits(permits: Readonly<Record<string, number | 'none'>>): Promise<void>
  /** Sets how many tasks of a definition run at once in the first queue, as a command does. */
  limitDefinition(task: string, concurrency: number | 'none'): Promise<void>
  /** Removes a running task's lock. The task's pool is notified. */
  loseLock(id: TaskId): Promise<void>
  /** Sets how many of the task's workers have died. If the backend lacks this method, a test must kill that many workers. */
  countDeaths?(id: TaskId, deaths: number): Promise<void>
  /** Returns how many of the task's workers have died, if the backend counts them. */
  deaths?(id: TaskId): Promise<number>
  /** Returns the names of all keys that are stored, if the backend has keys. */
  keys?(): Promise<readonly string[]>
  /** Kills a worker that is running these tasks. */
  kill(worker: string, running: readonly TaskId[]): Promise<void>
  /**
   * Registers a worker with this pool on the first queue, or removes it, if the backend does not know its workers by their consumers.
   */
  register?(worker: string, pool: WaitPool | undefined): Promise<void>
  /** Makes fetching fail in every pool. */
  failConsumers?(): void
  /** Makes the store unreachable and reachable again. */
  readonly outage?: { begin(): void; end(): void }
  /** Deletes everything that is stored. */
  close(): Promise<void>
}

export type OpenBackend = (options: BackendOptions) => Promise<Backend>
