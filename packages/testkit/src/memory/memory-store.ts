// Stores the tasks of one queue in memory, in the order in which they run, and moves them between the places of a queue.
import { type CommitRefusal, isFinal, type TaskStatus } from '@bullpen/contract'
import type { CancelAnswer, Envelope } from '@bullpen/contract/internal'
import {
  type AttemptResult,
  type CancelCause,
  type CancelOptions,
  type CancelRule,
  type Clock,
  type DeadTaskAnswer,
  encodePayload,
  endWithoutStart,
  errorKind,
  MAX_LOSSES,
  MAX_RETRY_RECORDS,
  matches,
  type Retention,
  type RetryOptions,
  retriedEnvelope,
  stopsRunning,
  taskBytes,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { oldTasks } from './old-tasks.ts'
import { RetryBudgets } from './retry-budgets.ts'
import { addRecord, asJson, candidateOf, type Owner, type Place, type StoredTask, statusOf } from './stored-task.ts'
import { Timers } from './timers.ts'
import { WaitingList } from './waiting-list.ts'

export interface MemoryStoreOptions {
  readonly clock: Clock
  /** The time from the loss of a task's owner until the task is recovered, in ms. */
  readonly stallMs: number
  /** How long ended tasks are kept. */
  readonly retention: Retention
  /** Called with each task that has ended. */
  readonly onEnded: (task: StoredTask) => void
  /** Called with each task that is deleted. */
  readonly onRemoved: (task: StoredTask) => void
}

/** The time until a released task is offered again, in ms. It is about as long as a round trip. */
const OFFERED_AGAIN_MS = 10

/** Returns whether the task was ended without an attempt. */
function endedBeforeItRan({ place, attempts }: StoredTask): boolean {
  return place === 'failed' && attempts.at(-1)?.fencingToken === 0
}

function isDead(task: StoredTask): boolean {
  return task.place === 'failed' && statusOf(task) === 'dead'
}

export class MemoryStore {
  readonly #clock: Clock
  readonly #stallMs: number
  readonly #retention: Retention
  readonly #onEnded: (task: StoredTask) => void
  readonly #onRemoved: (task: StoredTask) => void
  #tasks: StoredTask[] = []
  #accepted = 0
  #started = 0
  /** How many removed tasks each cancel by filter had ended before they ran. */
  readonly #removedOf = new Map<string, number>()
  readonly #waiting = new WaitingList()
  /** Called when a task may have become ready. */
  readonly #listeners = new Set<() => void>()
  readonly #timers: Timers
  #offersAgain = false
  /** No task is fetched before this time. */
  #throttledUntil = Number.NEGATIVE_INFINITY
  readonly #budgets = new RetryBudgets(
    ({ id, startsAt }) => this.#retryOf(id)?.dueAt === startsAt,
    ({ id, startsAt }) => {
      const task = this.#retryOf(id)
      if (task !== undefined) this.#scheduleAt(task, startsAt)
    },
  )

  constructor({ clock, stallMs, retention, onEnded, onRemoved }: MemoryStoreOptions) {
    this.#clock = clock
    this.#timers = new Timers(clock)
    this.#stallMs = stallMs
    this.#retention = retention
    this.#onEnded = onEnded
    this.#onRemoved = onRemoved
  }

  add(task: StoredTask): void {
    this.#tasks.push(task)
    this.#accepted++
    if (task.delayMs === 0) this.#schedule(task, 0)
    else this.#scheduleAt(task, task.enqueuedAt + task.delayMs)
  }

  /** Postpones the start of a scheduled task, and its queue timeout with it. */
  postpone(task: StoredTask, dueAt: number): void {
    const moved = dueAt - (task.dueAt ?? dueAt)
    task.delayMs += moved
    if (task.expiresAt !== undefined) task.expiresAt += moved
    this.#scheduleAt(task, dueAt)
  }

  /** Deletes a task that no consumer has. */
  remove(task: StoredTask): void {
    this.#waiting.remove(task)
    this.#tasks = this.#tasks.filter((each) => each !== task)
    this.#onRemoved(task)
  }

  get unfinished(): readonly StoredTask[] {
    return this.#tasks.filter(({ place }) => place !== 'completed' && place !== 'failed')
  }

  /** How many bytes the tasks take that have not ended. */
  get bytes(): number {
    return this.unfinished.reduce((sum, { dataBytes }) => sum + taskBytes(dataBytes), 0)
  }

  /** Returns how many retries the budget of a definition holds. */
  heldRetries(task: string): number {
    return this.#budgets.held(task, this.#clock.now())
  }

  /** How many tasks were ever added. */
  get accepted(): number {
    return this.#accepted
  }

  /** How many times a task was fetched. */
  get started(): number {
    return this.#started
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

  take(owner: Owner): StoredTask | undefined {
    const task = this.#next()
    if (task === undefined) return undefined
    this.#waiting.remove(task)
    task.place = 'active'
    task.owner = owner
    task.fencingToken++
    this.#started++
    task.startedAt = this.#clock.now()
    return task
  }

  /**
   * Undoes `take`. With a delay, the task returns to the head of the queue when the delay has passed. Returns false without changing
   * anything if the task now has another owner or none.
   */
  release(task: StoredTask, owner: Owner, delayMs?: number): boolean {
    if (task.owner !== owner) return false
    task.fencingToken--
    if (delayMs !== undefined) {
      task.returnsFirst = true
      this.#schedule(task, delayMs)
      return true
    }
    this.#wait(task, 'first', { wake: false })
    // The task is not offered at once, because the consumer that released it would only release it again.
    if (this.#offersAgain) return true
    this.#offersAgain = true
    this.#timers.after(OFFERED_AGAIN_MS, () => {
      this.#offersAgain = false
      this.wake()
    })
    return true
  }

  /**
   * Carries out an attempt's verdict. If the task now has a different owner or none, the verdict is refused and the reason is
   * returned.
   */
  commit(task: StoredTask, owner: Owner, result: AttemptResult): CommitRefusal | undefined {
    const { verdict, record, error, survival } = result
    if (task.owner !== owner) return task.owner === undefined ? 'lock_lost' : 'lock_taken'
    if (verdict.kind === 'lost') return 'lock_lost'
    addRecord(task, record)
    if (survival === 'lived') task.deaths = 0
    if (survival === 'died') task.deaths++
    // The task was fetched, but its handler was not started.
    if (record.fencingToken === 0) task.fencingToken--
    const { kind } = verdict
    const startsAt = this.#budgets.ended(result, this.#clock.now())
    if (record.fencingToken > 0 && kind !== 'requeued' && kind !== 'snoozed') task.attemptsMade++
    if (kind === 'requeued') {
      if (verdict.throttleMs !== undefined) this.#throttle(verdict.throttleMs)
      this.#wait(task, 'first')
    } else if (kind === 'snoozed') this.#schedule(task, verdict.delayMs)
    else if (startsAt !== undefined) this.#scheduleAt(task, startsAt)
    else {
      if (kind === 'completed')
        task.output = task.codec === undefined ? asJson(verdict.output) : encodePayload(verdict.output, task.codec)
      if (kind === 'dead') task.errorKind = errorKind(record, error, sha256)
      this.#end(task, kind === 'completed' ? 'completed' : 'failed')
    }
    return undefined
  }

  /**
   * Handles an owner that has died or lost its lock. After `stallMs`, the lost attempt gets a record, and the task waits again. A
   * death is counted unless the task was quarantined and did not run in the worker's process. After too many losses, the consumer
   * that fetches the task ends it: see `endPoisoned`.
   */
  orphan(task: StoredTask, owner: Owner): void {
    if (task.owner !== owner) return
    task.owner = undefined
    this.#timers.after(this.#stallMs, () => {
      task.losses++
      if (task.deaths === 0 || task.alone === task.fencingToken) task.deaths++
      const now = this.#clock.now()
      addRecord(task, {
        fencingToken: task.fencingToken,
        attempt: task.attemptsMade + 1,
        counted: false,
        state: 'RECOVER_ERR',
        reason: 'process_lost',
        message: 'the worker was lost',
        worker: owner.worker,
        startedAt: task.startedAt ?? now,
        endedAt: now,
      })
      this.#wait(task, 'first')
    })
  }

  /** Ends the next task if its owner has died too often for the task to be started again. Returns that task. */
  endPoisoned(): StoredTask | undefined {
    const task = this.#next()
    if (task === undefined || task.losses <= MAX_LOSSES) return undefined
    this.#waiting.remove(task)
    task.attemptsMade++
    const message = 'the worker was lost'
    task.errorKind = errorKind({ state: 'RECOVER_ERR', reason: 'process_lost', message }, undefined, sha256)
    this.#end(task, 'failed')
    return task
  }

  /** Ends a task that is not running, or asks the owner of a running task to stop it. */
  cancel(task: StoredTask, { stoppable, by }: CancelOptions): CancelAnswer {
    const cause: CancelCause = { reason: 'cancelled', by }
    if (task.place === 'completed' || task.place === 'failed') return 'already_ended'
    if (task.place === 'active') {
      if (!stoppable) return 'not_cancellable'
      if (task.cancelRequested?.reason !== 'cancelled') task.cancelRequested = cause
      task.owner?.cancel(cause)
      return 'cancelling'
    }
    this.#endCancelled(task, cause)
    return 'cancelled'
  }

  /**
   * Ends every matching task that is not running. A matching task that is running finishes its attempt but is not retried. If the
   * rule includes running tasks, that attempt is stopped.
   */
  cancelWhere(rule: CancelRule): void {
    for (const task of this.#tasks) {
      if (task.place === 'completed' || task.place === 'failed' || !matches(rule, candidateOf(task))) continue
      task.cancelledBy ??= rule.id
      if (task.place === 'active') {
        const cause: CancelCause = { reason: rule.reason, by: rule.by }
        task.cancelRequested ??= cause
        if (stopsRunning(rule)) task.owner?.cancel(cause)
      } else this.#endCancelled(task, { reason: rule.reason, by: rule.by }, rule.by)
    }
  }

  /** Returns how many tasks the rule ended before they ran, and whether every matching task has ended. */
  progressOf(rule: CancelRule): { readonly ended: number; readonly isDone: boolean } {
    const covered = this.#tasks.filter(({ cancelledBy }) => cancelledBy === rule.id)
    return {
      ended: covered.filter(endedBeforeItRan).length + (this.#removedOf.get(rule.id) ?? 0),
      isDone: covered.every(({ place }) => place === 'completed' || place === 'failed'),
    }
  }

  /** Runs a dead task again, with all its attempts. A repeated call with the same request changes nothing. */
  retry(task: StoredTask, { request, by, copy }: RetryOptions, envelope: Envelope): DeadTaskAnswer {
    if (task.retries.some((each) => each.request === request)) return 'done'
    if (!isDead(task)) return 'not_dead'
    const at = this.#clock.now()
    const entry = { at, by, request, ...(copy !== undefined && { copy }) }
    task.retries = [...task.retries, entry].slice(-MAX_RETRY_RECORDS)
    if (copy !== undefined) return 'done'
    task.envelope = asJson(retriedEnvelope(envelope, at))
    task.dataBytes = Buffer.byteLength(JSON.stringify(task.envelope))
    task.attemptsMade = 0
    task.losses = 0
    // A quarantined task runs in quarantine again.
    task.deaths = Math.min(task.deaths, 1)
    task.startedAt = undefined
    task.endedAt = undefined
    task.cancelRequested = undefined
    task.cancelledBy = undefined
    this.#wait(task, 'last')
    return 'done'
  }

  deleteDead(task: StoredTask): DeadTaskAnswer {
    if (!isDead(task)) return 'not_dead'
    this.remove(task)
    return 'done'
  }

  /** Ends every task whose queue timeout passed before its first attempt. `more` is true if other tasks may expire later. */
  expire(worker: string): { readonly expired: readonly StoredTask[]; readonly more: boolean } {
    const now = this.#clock.now()
    const unstarted = this.#tasks.filter(
      ({ place, fencingToken, expiresAt }) =>
        (place === 'waiting' || place === 'delayed') && fencingToken === 0 && expiresAt !== undefined,
    )
    const expired = unstarted.filter(({ expiresAt = now }) => expiresAt <= now)
    for (const task of expired) {
      this.#waiting.remove(task)
      addRecord(task, endWithoutStart('queue_timeout', { attempt: 1, process: worker, now }))
      this.#end(task, 'failed')
    }
    return { expired, more: unstarted.length > expired.length }
  }

  /** Cancels every scheduled transition. */
  close(): void {
    this.#timers.close()
  }

  /**
   * Returns the task that starts next, unless the queue is throttled. A scheduled task that is due counts as waiting, as in the Redis
   * broker, although its timer may not have fired yet on a busy machine.
   */
  #next(): StoredTask | undefined {
    const now = this.#clock.now()
    if (now < this.#throttledUntil) return undefined
    for (const task of this.in('delayed')) {
      if (task.dueAt !== undefined && task.dueAt <= now) this.#due(task, { wake: false })
    }
    return this.#waiting.all[0]
  }

  /** Throttles the queue. A throttle that would end before the current one has no effect. */
  #throttle(ms: number): void {
    this.#throttledUntil = Math.max(this.#throttledUntil, this.#clock.now() + ms)
    this.#timers.after(ms, () => this.wake())
  }

  #endCancelled(task: StoredTask, { reason, by }: CancelCause, process = 'memory'): void {
    this.#waiting.remove(task)
    const now = this.#clock.now()
    addRecord(task, endWithoutStart(reason, { attempt: task.attemptsMade + 1, process, now, by }))
    this.#end(task, 'failed')
  }

  #wait(task: StoredTask, where: 'first' | 'last', { wake = true } = {}): void {
    if (task.cancelRequested !== undefined) {
      this.#endCancelled(task, task.cancelRequested)
      return
    }
    task.place = 'waiting'
    task.owner = undefined
    task.dueAt = undefined
    this.#waiting.add(task, where)
    if (wake) this.wake()
  }

  /** Schedules the task. With a delay of 0, it is ready at once and waits behind the other tasks. */
  #schedule(task: StoredTask, delayMs: number): void {
    this.#scheduleAt(task, this.#clock.now() + delayMs)
  }

  /** Schedules the task for a time in ms since 1970. */
  #scheduleAt(task: StoredTask, dueAt: number): void {
    const delayMs = dueAt - this.#clock.now()
    if (delayMs <= 0 || task.cancelRequested !== undefined) {
      this.#wait(task, 'last')
      return
    }
    task.place = 'delayed'
    task.owner = undefined
    task.dueAt = dueAt
    this.#timers.after(delayMs, () => {
      // The task may have been postponed in the meantime. If a consumer has already found it due, other consumers may still be idle.
      if (task.place === 'delayed' && task.dueAt === dueAt) this.#due(task)
      else if (task.place === 'waiting') this.wake()
    })
  }

  #retryOf(id: string): StoredTask | undefined {
    return this.#tasks.find((task) => task.id === id && task.place === 'delayed')
  }

  #due(task: StoredTask, options?: { readonly wake: boolean }): void {
    const where = task.returnsFirst ? 'first' : 'last'
    task.returnsFirst = false
    this.#wait(task, where, options)
  }

  #end(task: StoredTask, place: 'completed' | 'failed'): void {
    task.place = place
    task.owner = undefined
    task.dueAt = undefined
    task.endedAt = this.#clock.now()
    this.#onEnded(task)
    this.#removeOld(statusOf(task))
  }

  /** Removes the tasks of one status that are past their retention. Checks again when the newest task reaches its maximum age. */
  #removeOld(status: TaskStatus): void {
    const ended = this.in(status === 'completed' ? 'completed' : 'failed').filter((task) => statusOf(task) === status)
    const kept = (isFinal(status) ? this.#retention[status] : undefined) ?? {}
    const { old, nextAt } = oldTasks(ended, kept, this.#clock.now())
    for (const task of old) {
      const { cancelledBy } = task
      if (cancelledBy !== undefined && endedBeforeItRan(task)) {
        this.#removedOf.set(cancelledBy, (this.#removedOf.get(cancelledBy) ?? 0) + 1)
      }
      this.#onRemoved(task)
    }
    if (old.size > 0) this.#tasks = this.#tasks.filter((task) => !old.has(task))
    if (nextAt !== undefined) this.#timers.after(nextAt - this.#clock.now(), () => this.#removeOld(status))
  }
}
