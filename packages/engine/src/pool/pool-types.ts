// What a pool is made of, what can be asked of it, and what it reports.
import type { PoolState, TaskId } from '@bullpen/contract'
import type { Consumer, ConsumerHost, LocalCancel, RunTask } from '../ports/consumer.ts'
import type { PoolStatus, SlotStatus } from '../ports/pool-status.ts'
import type { DrainLimits } from './drain.ts'
import type { DrainReport } from './drain-report.ts'
import type { WaitUntilFinished } from './online-set.ts'
import type { SlotHost } from './slot.ts'

export interface PoolOptions {
  readonly queue: string
  /** How many tasks run at once. */
  readonly concurrency: number
  /** What attempts need, except for what the pool itself provides. */
  readonly host: Omit<SlotHost, 'queue' | 'poolSignal' | 'onStuckHandler'>
  readonly consumer: (run: RunTask, pool: ConsumerHost) => Consumer
  /** With more handlers than these that still run after their attempt has ended, the pool fetches no more tasks. */
  readonly maxStuckHandlers: number
  /** When it aborts, the pool drains hard by itself; a drain that is under way waits no longer. */
  readonly parent?: AbortSignal | undefined
  /** The grace period of a drain that the parent causes. */
  readonly graceMs: number
}

export interface OnlineReport {
  readonly state: PoolState
  /**
   * Tasks of the set that have not ended or could not be looked up. Empty in ONLINE_DONE, and in SHUTDOWN when the last of them
   * ended during a drain; not empty in INCOMPLETE_DONE.
   */
  readonly unfinished: readonly TaskId[]
}

export interface Pool {
  readonly queue: string
  /** Slots that are not to stop. */
  size(): number
  busy(): number
  /** Handlers that still run after their attempt has ended. */
  stuckHandlers(): number
  state(): PoolState
  slots(): readonly SlotStatus[]
  /** Why it fetches no tasks; undefined when it does, or is paused on request. */
  notReady(): string | undefined
  status(): PoolStatus
  /** Waits for the store for as long as that takes, then fetches. @throws BullpenError `wrong_state` the second time. */
  start(): Promise<void>
  /**
   * Runs until these tasks have ended, here or on another worker, and then ends as ONLINE_DONE. A drain, a closed parent, or a
   * task that does not exist ends it as INCOMPLETE_DONE, with the unfinished tasks.
   *
   * @throws BullpenError `wrong_state` unless the pool is NEW.
   */
  online(tasks: readonly TaskId[], waitUntilFinished: WaitUntilFinished): Promise<OnlineReport>
  /**
   * Stops one slot: `wait` lets its attempt finish, `hard` stops the attempt, and its task is requeued.
   *
   * @throws BullpenError `wrong_state` when there is no such slot, or it is stopping already.
   */
  stopSlot(slot: number, how: 'wait' | 'hard'): void
  /**
   * Starts no more tasks until it is resumed. Running attempts go on; what is being fetched is released. Idempotent.
   *
   * @throws BullpenError `wrong_state` unless the pool runs.
   */
  pause(): void
  /** @throws BullpenError `wrong_state` unless the pool runs. */
  resume(): void
  /**
   * Changes the number of slots, 1 to 10,000. New ones work at once; surplus ones stop, idle ones first, the others after their
   * task. Slot numbers are never reused; stopped slots no longer appear in the status.
   *
   * @throws BullpenError `wrong_state` when the pool is ending or has ended; `invalid_configuration` for another number.
   */
  resize(concurrency: number): void
  /** Signals the attempt of this task, if this pool runs it. */
  cancel(id: TaskId): LocalCancel
  /**
   * Stops fetching, and lets running attempts go on for `drainMs`. Then long ones are signalled and have `graceMs` to end; their
   * tasks are requeued, and the attempts do not count. Resolves at most a second after both times, two for an online pool, which
   * looks once more at its unfinished tasks. Without a `drainMs` it waits for as long as attempts and the store take. Concurrent
   * drains merge, and the harder limits win.
   */
  drain(limits: DrainLimits): Promise<DrainReport>
}
