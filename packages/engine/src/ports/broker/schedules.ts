// Defines the port for schedules, and the smaller port with which a broker stores them.
import type { ScheduleAction, ScheduleDefinition, ScheduleSource, TaskId, TaskStatus } from '@bullpen/contract'
import type { Edition, Editions } from '../../schedule/editions.ts'
import type { ScheduleChange } from '../../schedule/schedule-diff.ts'
import type { ScheduleRecord } from '../../schedule/schedule-record.ts'
import type { TroubleCounts } from '../../schedule/trouble-changes.ts'
import { hex } from '../../task/digest.ts'
import type { NewTask } from './new-task.ts'

/** A schedule together with the status of its last run. */
export interface ScheduleState {
  readonly record: ScheduleRecord
  /** Undefined if the schedule has not enqueued a task yet, or if the task has been deleted. */
  readonly lastStatus: TaskStatus | undefined
  /** When the schedule was read, in ms since 1970 on the store's clock. */
  readonly now: number
}

export interface PutOptions {
  readonly source: ScheduleSource
  /** Who stores the schedule, for `changedBy`. */
  readonly by: string
}

/**
 * Stores and controls schedules. Every call that changes a schedule is atomic, and is idempotent except for `run`.
 *
 * @throws BullpenError `schedule_not_found` if the schedule does not exist, or `redis_unavailable`.
 */
export interface Schedules {
  /**
   * Returns the schedules of every queue of the namespace, in the order of their names. A schedule whose input cannot be decoded is
   * returned without its input. Takes one round trip, and two for each queue.
   */
  list(): Promise<readonly ScheduleState[]>
  find(name: string): Promise<ScheduleState>
  /**
   * Creates the schedule or changes it. A new schedule, and one whose cron expression or interval has changed, starts with the first
   * tick after now. A paused schedule stays paused.
   *
   * @throws BullpenError `schedule_name_taken` if a task of another queue has a schedule with this name.
   */
  put(
    definition: ScheduleDefinition,
    options: PutOptions,
  ): Promise<{ readonly action: Exclude<ScheduleAction, 'deleted'>; readonly state: ScheduleState }>
  /** Stops the ticks. Tasks that have been enqueued are not affected. */
  pause(name: string, by: string): Promise<ScheduleState>
  /** Continues with the first tick after now. Ticks that passed during the pause are not missed. */
  resume(name: string, by: string): Promise<ScheduleState>
  /**
   * Enqueues a task now, regardless of the ticks, of a pause and of the previous run.
   *
   * @throws BullpenError `queue_draining`, or `unreadable_payload` if the schedule's input cannot be decoded.
   */
  run(name: string): Promise<{ readonly id: TaskId; readonly state: ScheduleState }>
  /**
   * Deletes the schedule. Tasks that have been enqueued are not affected.
   *
   * @throws BullpenError `schedule_not_found`.
   */
  remove(name: string): Promise<void>
  /**
   * Returns how many of a queue's schedules are in each kind of trouble. The numbers may be up to 30 s old. Takes one round trip,
   * regardless of the number of schedules.
   */
  troubles(queue: string): Promise<TroubleCounts>
  /**
   * Makes the stored schedules match a catalogue's: stores its schedules, and deletes those that came from a catalogue and are
   * no longer in it. A schedule of a queue that is not the catalogue's is deleted only if the catalogue has one with the same
   * name, which has moved to another queue. With `dryRun`, only returns what would change. Each schedule is changed atomically,
   * but not all of them together.
   */
  sync(
    definitions: readonly ScheduleDefinition[],
    options: { readonly by: string; readonly dryRun: boolean },
  ): Promise<readonly ScheduleChange[]>
  /**
   * Stores a running process's schedules, unless a newer process declares them differently (../../schedule/editions.ts). Each definition
   * is stored once, so that a schedule that was changed, paused or deleted by request stays so until its definition changes. A schedule
   * that only a request has stored is not changed. Returns what was stored. Takes one round trip if nothing is to be stored.
   */
  declare(
    definitions: readonly ScheduleDefinition[],
    options: { readonly by: string },
  ): Promise<readonly Pick<ScheduleChange, 'name' | 'queue' | 'action'>[]>
}

/** A stored schedule, and the token that changes with every write. */
export interface StoredSchedule extends ScheduleState {
  readonly token: string
}

/** One write of a schedule. It is refused if the schedule has been written since it was read. */
export interface ScheduleWrite {
  readonly queue: string
  readonly name: string
  /** The token of the schedule that was read. Undefined if the schedule did not exist. */
  readonly expected: string | undefined
  /** The token after this write, which is different for each write. A repeated write has the same one. */
  readonly token: string
  /** Undefined to delete the schedule. */
  readonly record: ScheduleRecord | undefined
  /** When the leader must examine the schedule again, in ms since 1970. Undefined if it need not. */
  readonly wakeAt: number | undefined
  /** The task to add in the same atomic step. */
  readonly add?: NewTask | undefined
  /**
   * The earliest time of the write, in ms since 1970 on the store's clock. An earlier write is refused. By default, there is none.
   */
  readonly notBefore?: number | undefined
}

/**
 * - `conflict`: the schedule has been written since it was read.
 * - `early`: the time `notBefore` has not been reached on the store's clock.
 * - `draining`: the queue does not accept tasks.
 */
export type WriteResult = 'written' | 'conflict' | 'early' | 'draining'

export interface DueSchedules {
  readonly now: number
  readonly schedules: readonly StoredSchedule[]
  /** Why the input of a schedule that is due could not be decoded, if there is one. `schedules` does not contain this schedule. */
  readonly unreadable?: unknown
}

/** Where a broker keeps its schedules. Each schedule is stored with the queue of its task. */
export interface ScheduleStore {
  /** Returns the current time on the clock of the queue's server, in ms since 1970. */
  now(queue: string): Promise<number>
  /** Returns the schedules of every queue of the namespace, whatever this process's catalogue contains. */
  all(): Promise<readonly StoredSchedule[]>
  /** Returns the queue's schedules whose `wakeAt` is at most `withinMs` from now, and the time on the store's clock. */
  due(queue: string, withinMs: number): Promise<DueSchedules>
  write(write: ScheduleWrite): Promise<WriteResult>
  /** Notes that a running process declares these editions, and returns all that are known. Takes one round trip. */
  declare(editions: readonly Edition[]): Promise<Editions>
  /** Notes which edition of a schedule was stored. Takes one round trip. */
  stored(edition: Edition): Promise<void>
  /** Counts the queue's schedules that are in trouble. */
  troubles(queue: string): Promise<TroubleCounts>
}

/** Returns a token for one write of a schedule. */
export function newToken(randomBytes: (size: number) => Uint8Array): string {
  return hex(randomBytes(TOKEN_BYTES))
}

const TOKEN_BYTES = 9
