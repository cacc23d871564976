// Defines a pool's options, methods and reports.
import type { PoolState, TaskId } from '@bullpen/contract'
import type { Consumer, ConsumerHost, LocalCancel, RunTask } from '../ports/consumer.ts'
import type { PoolStatus, SlotStatus } from '../ports/pool-status.ts'
import type { Quarantine } from '../quarantine/quarantine.ts'
import type { DrainLimits, DrainReport } from './drain.ts'
import type { OnlineWork, WaitUntilFinished } from './online-set.ts'
import type { SlotHost } from './slot.ts'

export interface PoolOptions {
  readonly queue: string
  /** How many tasks may run at once. */
  readonly concurrency: number
  /** What attempts need, except for what the pool itself provides. */
  readonly host: Omit<SlotHost, 'queue' | 'poolSignal' | 'onStuckHandler'>
  readonly consumer: (run: RunTask, pool: ConsumerHost) => Consumer
  /** The worker's places for quarantined tasks, which its pools share. By default, the pool has places of its own. */
  readonly quarantine?: Quarantine | undefined
  /**
   * The maximum number of stuck handlers, which are handlers that are still running after their attempts have ended. A pool with
   * more stuck handlers does not fetch tasks.
   */
  readonly maxStuckHandlers: number
  /** When this signal aborts, the pool drains hard. A drain that is already in progress stops waiting for running attempts. */
  readonly parent?: AbortSignal | undefined
  /** The grace period of a drain that the parent signal causes, in ms. */
  readonly graceMs: number
}

export interface OnlineReport {
  readonly state: PoolState
  /**
   * The tasks of the set that have not ended or could not be looked up. The list is empty in ONLINE_DONE, and in SHUTDOWN if the
   * last tasks of the set ended during a drain. The list is not empty in INCOMPLETE_DONE.
   */
  readonly unfinished: readonly TaskId[]
}

export interface Pool {
  readonly queue: string
  /** Returns the number of slots, not counting slots that are stopping. */
  size(): number
  busy(): number
  /** Returns the number of handlers that are still running after their attempts have ended. */
  stuckHandlers(): number
  /**
   * Returns when the drain's time limit and grace period are over, in ms since 1970. Undefined if the pool is not draining, or if the drain
   * has no time limit.
   */
  drainsUntil(): number | undefined
  state(): PoolState
  slots(): readonly SlotStatus[]
  /**
   * Returns why the pool is not fetching tasks. Returns undefined if the pool is fetching tasks or was paused by request. If the store is
   * known to be usable, which it is not by default, a lost connection is no reason.
   */
  notReady(isStoreUsable?: boolean): string | undefined
  status(): PoolStatus
  /**
   * Waits until the store is available, however long that takes, and then starts fetching.
   *
   * @throws BullpenError `wrong_state` if the pool has already been started.
   */
  start(): Promise<void>
  /**
   * Runs until these tasks have ended, on this worker or another, and then ends as ONLINE_DONE. If the pool is drained, if its
   * parent is closed, or if a task does not exist, the pool ends as INCOMPLETE_DONE and reports the unfinished tasks.
   *
   * @throws BullpenError `wrong_state` unless the pool is NEW.
   */
  online(tasks: readonly TaskId[], waitUntilFinished: WaitUntilFinished): Promise<OnlineReport>
  /**
   * Runs until the group has ended, on this worker or another, and then ends as ONLINE_DONE. If the pool is drained, if its parent is
   * closed, or if this worker cannot run the group to its end, the pool ends as INCOMPLETE_DONE. Resolves with the state in which the
   * pool has ended. The pool's consumer needs the group's candidates, because otherwise other tasks run as well.
   *
   * @throws BullpenError `wrong_state` unless the pool is NEW.
   */
  onlineGroup(group: OnlineWork): Promise<PoolState>
  /**
   * Stops one slot. With `wait`, its attempt may finish. With `hard`, its attempt is stopped and its task is requeued.
   *
   * @throws BullpenError `wrong_state` if the slot does not exist or is already stopping.
   */
  stopSlot(slot: number, how: 'wait' | 'hard'): void
  /**
   * Stops starting tasks until the pool is resumed. Running attempts continue, and tasks that are being fetched are released.
   * Pausing a paused pool has no effect.
   *
   * @throws BullpenError `wrong_state` unless the pool is running.
   */
  pause(): void
  /** Ends a pause. Has no effect if the pool is not paused. @throws BullpenError `wrong_state` unless the pool is running. */
  resume(): void
  /**
   * Changes the number of slots, from 1 to 10,000. New slots start working at once. Surplus slots stop: idle slots first, and busy
   * slots after their current task. Slot numbers are never reused, and stopped slots no longer appear in the status.
   *
   * @throws BullpenError `wrong_state` if the pool is ending or has ended, or `invalid_configuration` if the number is out of
   * range.
   */
  resize(concurrency: number): void
  /** Signals the attempt of this task if this pool is running it. */
  cancel(id: TaskId): LocalCancel
  /**
   * Stops fetching and lets running attempts continue for `drainMs`. After that, long attempts receive an abort signal and have
   * `graceMs` to finish. If an attempt does not return valid output in that time, its task is requeued, and the attempt does not
   * count against the retry policy, unless the definition sets `onInterrupt: 'fail'`. The promise resolves at most one second
   * after both times have elapsed, or two seconds for an online pool, which looks up its unfinished tasks once more. If `drainMs`
   * is 'none', the drain waits for the attempts and the store, however long they take. If drains are concurrent, the strictest
   * limits apply.
   */
  drain(limits: DrainLimits): Promise<DrainReport>
}
