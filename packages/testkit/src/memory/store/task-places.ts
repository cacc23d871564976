// Holds the tasks of one queue in memory, each in one of the places of a queue, and moves a task on when its time has come.
import { isFinal, type PerConcurrencyKey, type TaskId, type TaskRecord, type TaskStatus } from '@bullpen/contract'
import { encodeLines, encodeNext, MAX_AHEAD } from '@bullpen/contract/internal'
import {
  type CancelCause,
  type Clock,
  endWithoutStart,
  type Retention,
  taskBytes,
  type WaitFacts,
} from '@bullpen/engine/internal'
import type { ConcurrencyKeyLimitChange } from './key-limits.ts'
import { KeyStarts } from './key-starts.ts'
import { Limiters } from './limiters.ts'
import { oldTasks } from './old-tasks.ts'
import { addRecord, type Place, recordOf, type StoredTask, statusOf } from './stored-task.ts'
import { Timers } from './timers.ts'
import { type ClosedService, WaitingList, type WaitingPlace } from './waiting-list.ts'

export interface TaskPlacesOptions {
  readonly clock: Clock
  /** How long ended tasks are kept. */
  readonly retention: Retention
  /** Called with each task that has ended. */
  readonly onEnded: (task: StoredTask) => void
  /** Called with each task that is deleted. */
  readonly onRemoved: (task: StoredTask) => void
  /** Returns which service keeps a waiting task from starting now, and until when, if that is known. */
  readonly blockedBy: (task: Pick<StoredTask, 'services'>) => ClosedService | undefined
}

/** Returns whether the task was ended without an attempt. */
export function endedBeforeItRan({ place, attempts }: StoredTask): boolean {
  return place === 'failed' && attempts.at(-1)?.fencingToken === 0
}

/** Returns how many bytes a task takes until it ends, with its follow-ups and compensations. */
export function bytesOf(task: StoredTask): number {
  return taskBytes(task.dataBytes) + Buffer.byteLength(linesOf(task))
}

/** Returns all that is stored of a task's follow-ups and compensations, in the form in which the Redis broker stores it. */
function linesOf({ followUps, next, compensations }: StoredTask): string {
  const lines = [encodeLines(followUps), encodeNext(next)].filter((text) => text !== '').join('\n')
  return lines + compensations.map(({ identity, template }) => `${identity} ${JSON.stringify(template)}`).join('\n')
}

export class TaskPlaces {
  readonly #clock: Clock
  readonly #options: TaskPlacesOptions
  readonly #timers: Timers
  #tasks: readonly StoredTask[] = []
  #accepted = 0
  #retried = 0
  /** How many removed tasks each cancel by filter had ended before they ran. */
  readonly #removedOf = new Map<string, number>()
  readonly #starts: KeyStarts
  readonly #limiters: Limiters
  readonly #waiting: WaitingList
  /** Called when a task may have become ready. */
  readonly #listeners = new Set<() => void>()
  /** No task is fetched before this time. */
  #throttledUntil = Number.NEGATIVE_INFINITY
  /** When the next wake is scheduled because a key may start a task again. */
  #wakesAt = Number.POSITIVE_INFINITY

  constructor(options: TaskPlacesOptions) {
    const { clock, blockedBy } = options
    this.#options = options
    this.#clock = clock
    this.#timers = new Timers(clock)
    this.#starts = new KeyStarts(
      clock,
      (key) => this.#tasks.filter(({ place, turn }) => place === 'active' && turn?.key === key).length,
    )
    this.#limiters = new Limiters({
      inUse: (limiter) => this.#inUse(limiter),
      isBlocked: (service) => blockedBy({ services: [service] }) !== undefined,
    })
    this.#waiting = new WaitingList({ starts: this.#starts, limiters: this.#limiters, blockedBy })
  }

  add(task: StoredTask): void {
    this.#tasks = [...this.#tasks, task]
    this.#accepted++
    if (task.delayMs === 0) this.schedule(task, 0)
    else this.scheduleAt(task, task.enqueuedAt + task.delayMs)
  }

  /** Postpones the start of a scheduled task, and its queue timeout with it. */
  postpone(task: StoredTask, dueAt: number): void {
    const moved = dueAt - (task.dueAt ?? dueAt)
    task.delayMs += moved
    if (task.expiresAt !== undefined) task.expiresAt += moved
    this.scheduleAt(task, dueAt)
  }

  /** Returns a dead task to the waiting tasks. */
  retry(task: StoredTask): void {
    this.#retried++
    this.wait(task, 'last')
  }

  /** Deletes a task that no consumer has. */
  remove(task: StoredTask): void {
    this.#leaveWaiting(task)
    this.#tasks = this.#tasks.filter((each) => each !== task)
    this.#options.onRemoved(task)
  }

  get all(): readonly StoredTask[] {
    return this.#tasks
  }

  get unfinished(): readonly StoredTask[] {
    return this.#tasks.filter(({ place }) => place !== 'completed' && place !== 'failed')
  }

  /** How many bytes the tasks take that have not ended. */
  get bytes(): number {
    return this.unfinished.reduce((sum, task) => sum + bytesOf(task), 0)
  }

  /** How many tasks were ever added. */
  get accepted(): number {
    return this.#accepted
  }

  /** How often a task has ended, or was deleted before its end. A dead task that is retried ends again. */
  get ended(): number {
    return this.#accepted + this.#retried - this.unfinished.length
  }

  /** How many tasks were deleted because they are no longer kept, or because another task has replaced them. */
  get removed(): number {
    return this.#accepted - this.#tasks.length
  }

  /**
   * Returns the tasks of one place, in the order in which they run, become due or have ended. Tasks with the same time are ordered
   * by id.
   */
  in(place: Place): readonly StoredTask[] {
    if (place === 'waiting') return this.#waiting.all
    const order = ({ dueAt, endedAt, startedAt }: StoredTask): number => dueAt ?? endedAt ?? startedAt ?? 0
    return this.#tasks
      .filter((task) => task.place === place)
      .sort((a, b) => order(a) - order(b) || (a.id < b.id ? -1 : 1))
  }

  /** Calls `listener` when a task may have become ready. Returns a function that removes it. */
  onReady(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  wake(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Returns how many removed tasks a cancel by filter had ended before they ran. */
  removedOf(rule: string): number {
    return this.#removedOf.get(rule) ?? 0
  }

  /**
   * Returns the task that starts next, unless the queue is throttled. A scheduled task that is due counts as waiting, as in the Redis
   * broker, although its timer may not have fired yet on a busy machine. `only`, if given, contains the ids of the tasks that may start.
   */
  next(only?: readonly TaskId[]): StoredTask | undefined {
    const now = this.#clock.now()
    if (now < this.#throttledUntil) return undefined
    for (const task of this.in('delayed')) {
      if (task.dueAt !== undefined && task.dueAt <= now) this.#due(task, { wake: false })
    }
    const next = this.#waiting.next(only)
    if (next === undefined) this.#wakeAt(this.#waiting.nextStartAt)
    return next
  }

  /** Returns what a waiting task waits for, if its queue is fair, or if the task needs something of a limiter. */
  waitsFor(task: StoredTask): Pick<TaskRecord, 'waitsFor'> {
    return this.#waiting.waitsFor(task)
  }

  /** Returns what is known about why a task does not run, besides its workers. */
  waitFacts(task: StoredTask): Omit<WaitFacts, 'pools' | 'servedAt'> {
    const now = this.#clock.now()
    const queued = this.in('waiting').filter(({ lane }) => lane === undefined)
    const place = queued.indexOf(task)
    return {
      ...{ now, task: recordOf(task), lane: this.waitsFor(task).waitsFor },
      isPostponed: task.place === 'delayed' && task.returnsFirst,
      isLost: task.place === 'active' && task.owner === undefined,
      ahead: Math.min(place < 0 ? queued.length : place, MAX_AHEAD),
      throttledUntil: this.#throttledUntil > now ? this.#throttledUntil : undefined,
      active: this.in('active').length,
      // No command reaches the memory broker.
      ...{ pause: undefined, drain: undefined, isOutboxFull: false, usedRate: undefined, concurrency: undefined },
    }
  }

  /** Returns the active tasks of a concurrency key, its limits, and what keeps it from starting a task. */
  stateOf(key: string): ReturnType<KeyStarts['stateOf']> {
    return this.#starts.stateOf(key)
  }

  /** Replaces the limits of the catalogue: those of concurrency keys, and the capacities of limiters. */
  defineLimits(keyLimits: PerConcurrencyKey | undefined, capacities: Readonly<Record<string, number>>): void {
    this.#starts.limits.define(keyLimits)
    this.#waiting.limitsChanged(this.#limiters.define(capacities))
    this.wake()
  }

  /** Sets the capacity of a limiter, which replaces that of the catalogue until it is set to 'none'. */
  setCapacity(limiter: string, capacity: number | 'none'): void {
    this.#waiting.limitsChanged(this.#limiters.set(limiter, capacity))
    this.wake()
  }

  /** Sets limits of a concurrency key or, without `key`, of every key. */
  setKeyLimits(change: ConcurrencyKeyLimitChange, key?: string): void {
    this.#starts.limits.set(change, key)
    this.#waiting.limitsChanged()
    this.wake()
  }

  /** Throttles the queue or, with `key`, a concurrency key. A throttle that would end before the current one has no effect. */
  throttle(ms: number, key?: string): void {
    if (key !== undefined) {
      this.#starts.throttle(key, ms)
      return
    }
    this.#throttledUntil = Math.max(this.#throttledUntil, this.#clock.now() + ms)
    this.#timers.after(ms, () => this.wake())
  }

  /** Makes a task active, which is no longer waiting then. */
  activate(task: StoredTask): void {
    task.place = 'active'
    this.#waiting.start(task)
  }

  /** Wakes the consumers at the given time, if any, in ms since 1970. */
  #wakeAt(time: number | undefined): void {
    if (time === undefined || time >= this.#wakesAt) return
    this.#wakesAt = time
    this.#timers.after(time - this.#clock.now(), () => {
      this.#wakesAt = Number.POSITIVE_INFINITY
      this.wake()
    })
  }

  /** Puts a task in the waiting list, or ends it if it was cancelled while it was active. */
  wait(task: StoredTask, where: WaitingPlace, { wake = true } = {}): void {
    if (task.cancelRequested !== undefined) {
      this.endCancelled(task, task.cancelRequested)
      return
    }
    const wasActive = task.place === 'active'
    task.place = 'waiting'
    task.owner = undefined
    task.dueAt = undefined
    if (wasActive) this.#waiting.left(task)
    this.#waiting.add(task, where)
    if (wake) this.wake()
  }

  /** Schedules the task. With a delay of 0, it is ready at once and waits behind the other tasks. */
  schedule(task: StoredTask, delayMs: number): void {
    this.scheduleAt(task, this.#clock.now() + delayMs)
  }

  /** Schedules the task for a time in ms since 1970. */
  scheduleAt(task: StoredTask, dueAt: number): void {
    const delayMs = dueAt - this.#clock.now()
    if (delayMs <= 0 || task.cancelRequested !== undefined) {
      this.wait(task, 'last')
      return
    }
    const wasActive = task.place === 'active'
    task.place = 'delayed'
    task.owner = undefined
    task.dueAt = dueAt
    this.#timers.after(delayMs, () => {
      // The task may have been postponed in the meantime. If a consumer has already found it due, other consumers may still be idle.
      if (task.place === 'delayed' && task.dueAt === dueAt) this.#due(task)
      else if (task.place === 'waiting') this.wake()
    })
    if (wasActive) this.#left(task)
  }

  scheduled(id: string): StoredTask | undefined {
    return this.#tasks.find((task) => task.id === id && task.place === 'delayed')
  }

  #due(task: StoredTask, options?: { readonly wake: boolean }): void {
    const where = task.returnsFirst ? 'first' : 'last'
    task.returnsFirst = false
    this.wait(task, where, options)
  }

  /** Ends a task that is not active because of a cancellation. */
  endCancelled(task: StoredTask, { reason, by }: CancelCause, process = 'memory'): void {
    const now = this.#clock.now()
    addRecord(task, endWithoutStart(reason, { attempt: task.attemptsMade + 1, process, now, by }))
    this.end(task, 'failed')
  }

  end(task: StoredTask, place: 'completed' | 'failed'): void {
    const wasActive = task.place === 'active'
    this.#leaveWaiting(task)
    task.place = place
    task.owner = undefined
    task.dueAt = undefined
    task.endedAt = this.#clock.now()
    this.#options.onEnded(task)
    const status = statusOf(task)
    // A completed task of a pipeline run has passed its output on, and a task that was cancelled with its run is of no use to anyone.
    const isUnkept = status === 'completed' || (status === 'cancelled' && task.isCancelledWithRun)
    if (isUnkept && task.envelope.run !== undefined) this.remove(task)
    this.#removeOld(status)
    if (wasActive) this.#left(task)
  }

  /** Lets other tasks start because a task that has stopped being active holds nothing any more. */
  #left(task: StoredTask): void {
    this.#waiting.left(task)
    const { lane, turn } = task
    const gavePlaceBack = turn !== undefined && this.#starts.limits.of(turn.key).concurrency !== undefined
    if (gavePlaceBack || (lane !== undefined && lane.needs.length > 0)) this.wake()
  }

  /** Removes a task if it is waiting. Other tasks that have waited behind it start once what ends it is done. */
  #leaveWaiting(task: StoredTask): void {
    if (this.#waiting.remove(task)) queueMicrotask(() => this.wake())
  }

  /** Returns how much of a limiter the active tasks hold. */
  #inUse(limiter: string): number {
    const needs = this.#tasks.flatMap(({ place, lane }) => (place === 'active' && lane?.needs) || [])
    return needs.reduce((sum, need) => (need.limiter === limiter ? sum + need.amount : sum), 0)
  }

  /** Removes the tasks of one status that are past their retention. Checks again when the newest task reaches its maximum age. */
  #removeOld(status: TaskStatus): void {
    const ended = this.in(status === 'completed' ? 'completed' : 'failed').filter((task) => statusOf(task) === status)
    const kept = (isFinal(status) ? this.#options.retention[status] : undefined) ?? {}
    const { old, nextAt } = oldTasks(ended, kept, this.#clock.now())
    for (const task of old) {
      const { cancelledBy } = task
      if (cancelledBy !== undefined && endedBeforeItRan(task)) {
        this.#removedOf.set(cancelledBy, (this.#removedOf.get(cancelledBy) ?? 0) + 1)
      }
      this.#options.onRemoved(task)
    }
    if (old.size > 0) this.#tasks = this.#tasks.filter((task) => !old.has(task))
    if (nextAt !== undefined) this.#timers.after(nextAt - this.#clock.now(), () => this.#removeOld(status))
  }

  /** Calls `then` after `ms`, unless the places are closed before. */
  after(ms: number, then: () => void): void {
    this.#timers.after(ms, then)
  }

  /** Cancels every scheduled call. */
  close(): void {
    this.#timers.close()
  }
}
