// What the suite needs of a broker: the broker itself, a feed for pools, and ways to do it harm.
import type { TaskId } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import type { Clock, PoolOptions } from '@bullpen/engine/internal'

export interface BackendOptions {
  readonly queues: readonly string[]
  readonly sizeLimit: number
  readonly onExpired: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
  /** `quick`: a lost lock is seen within a second. `usual`: as in production, which asks less of Redis. */
  readonly locks: 'quick' | 'usual'
  /** For a broker that lives by a clock. Others live in real time. */
  readonly clock: Clock
}

/** Nobody else uses it. */
export interface Backend {
  readonly broker: Broker
  /** For a pool of the first queue, in a process of this name. */
  feed(options: { readonly concurrency: number; readonly process: string }): PoolOptions['consumer']
  /** The lock of a running task is gone; its pool hears of it. */
  loseLock(id: TaskId): Promise<void>
  /** The task has had so many deaths, where that can be said; otherwise they are to be died. */
  countDeaths?(id: TaskId, deaths: number): Promise<void>
  /** How many deaths are counted, where that can be asked. */
  deaths?(id: TaskId): Promise<number>
  /** Nothing of this process, which has these tasks, is heard any more. */
  kill(process: string, running: readonly TaskId[]): Promise<void>
  /** Fetching fails for good, in every pool. */
  breakFeeds?(): void
  /** The store can't be reached, and can again. */
  readonly outage?: { begin(): void; end(): void }
  /** With all that is stored. */
  close(): Promise<void>
}

export type OpenBackend = (options: BackendOptions) => Promise<Backend>
