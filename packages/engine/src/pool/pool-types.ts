// What a pool is made of, what may be asked of it, and what it reports.
import type { PoolState, TaskId } from '@bullpen/contract'
import type { RunnerHost } from '../attempt/runner.ts'
import type { NewTask } from '../ports/broker.ts'
import type { Consumer, ConsumerHost, LocalCancel, RunTask } from '../ports/consumer.ts'
import type { PoolStatus, SlotStatus } from '../ports/pool-status.ts'
import type { DrainLimits } from './drain-deadline.ts'
import type { DrainReport } from './drain-report.ts'
import type { WaitUntilFinished } from './online-set.ts'

export interface PoolOptions {
  readonly queue: string
  /** How many tasks run at once. */
  readonly concurrency: number
  readonly host: Omit<RunnerHost, 'queue' | 'poolSignal' | 'stuckHandlers' | 'closedBy'>
  readonly consumer: (work: RunTask, pool: ConsumerHost) => Consumer
  /** Handlers that go on after their attempt has ended: with more than these the pool takes no more tasks. */
  readonly maxStuckHandlers: number
  /** Closed: the pool drains hard, by itself; a drain that is under way waits no longer. */
  readonly parent?: AbortSignal | undefined
  /** For a drain by the parent's end. */
  readonly graceMs: number
}

export interface OnlineReport {
  readonly state: PoolState
  /**
   * Those of the set that have not ended, or that nobody could be asked about. None when the state is ONLINE_DONE, or
   * SHUTDOWN, when the last of them ended during a drain; some when it is INCOMPLETE_DONE.
   */
  readonly unfinished: readonly TaskId[]
}

export interface Pool {
  readonly queue: string
  /** Workers that are not told to end. */
  size(): number
  busy(): number
  /** Handlers that go on after their attempt has ended. */
  stuckHandlers(): number
  state(): PoolState
  slots(): readonly SlotStatus[]
  /** Undefined: it takes tasks, or is paused, as somebody wished. Otherwise why not. */
  notReady(): string | undefined
  status(): PoolStatus
  /** Waits for the store as long as it takes, then begins to fetch. @throws BullpenError `wrong_state` the second time. */
  start(): Promise<void>
  /**
   * Runs until these tasks have ended, here or elsewhere, and then ends itself: ONLINE_DONE. A drain, a closed parent, or a
   * task that is not there at all, ends it before: INCOMPLETE_DONE, with what is left.
   *
   * @throws BullpenError `wrong_state` unless the pool is NEW.
   */
  online(tasks: readonly TaskId[], settled: WaitUntilFinished): Promise<OnlineReport>
  /** Enqueues a task to this pool's queue. @throws BullpenError `wrong_state` unless the pool is BG_RUNNING. */
  submit(task: NewTask): Promise<void>
  /** As {@link Crew.stop}. @throws BullpenError `wrong_state` for a slot that is ending, or that there is not. */
  stopSlot(slot: number, how: 'wait' | 'hard'): void
  /**
   * Starts nothing more until it is resumed; what runs goes on, what is being fetched goes back. Twice is once.
   *
   * @throws BullpenError `wrong_state` unless the pool runs.
   */
  pause(): void
  /** @throws BullpenError `wrong_state` unless the pool runs. */
  resume(): void
  /**
   * So many slots from now on, 1 to 10,000: new ones at once; those that are too many end, idle ones first, the others
   * after their task. Numbers are not given twice, and those that have ended are told of no longer.
   *
   * @throws BullpenError `wrong_state` when the pool ends, or has ended; `invalid_configuration` for another number.
   */
  resize(concurrency: number): void
  /** Of a task that runs in this pool. */
  cancel(id: TaskId): LocalCancel
  /**
   * Fetches nothing more; running tasks may finish for `drainMs`; then long ones are signalled and have `graceMs` to end,
   * and go back to the queue without using up an attempt. Resolves at the latest a second after both; an online pool that
   * looks once more at what is left, two. Without a `drainMs` it waits for as long as it takes, also for the store.
   * Twice is one drain, with the harshest of what was asked for; once it has signalled, its grace stays.
   */
  drain(limits: DrainLimits): Promise<DrainReport>
}
