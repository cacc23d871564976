// Carries out what happens to the tasks of one queue in memory: fetches, releases, results, lost workers, cancels, retries and expiries.
import type { BreakersOf, CommitRefusal, TaskId } from '@bullpen/contract'
import { type CancelAnswer, decodeLines, type Envelope } from '@bullpen/contract/internal'
import {
  type AttemptEvents,
  type AttemptResult,
  type BreakerStatus,
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
  QueueBreakers,
  RetryBudgets,
  type RetryOptions,
  retriedEnvelope,
  type SetBreaker,
  stopsRunning,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { TaskReports } from '../events/task-reports.ts'
import { addRecord, asJson, candidateOf, type Owner, type StoredTask, statusOf } from './stored-task.ts'
import { endedBeforeItRan, TaskPlaces, type TaskPlacesOptions } from './task-places.ts'

export interface MemoryStoreOptions extends Omit<TaskPlacesOptions, 'blockedBy'> {
  readonly reports: TaskReports
  /** The time from the loss of a task's owner until the task is recovered, in ms. */
  readonly stallMs: number
}

/** The time until a released task is offered again, in ms. It is about as long as a round trip. */
const OFFERED_AGAIN_MS = 10

function isDead(task: StoredTask): boolean {
  return task.place === 'failed' && statusOf(task) === 'dead'
}

export class MemoryStore {
  readonly places: TaskPlaces
  readonly #clock: Clock
  readonly #stallMs: number
  readonly #reports: TaskReports
  /** How many times a task was fetched. */
  started = 0
  /** The number of times that a task has waited again because its owner was lost. */
  recovered = 0
  #offersAgain = false
  readonly #breakers = new QueueBreakers(Math.random)
  readonly #budgets = new RetryBudgets(
    ({ id, startsAt }) => this.places.scheduled(id)?.dueAt === startsAt,
    ({ id, startsAt }) => {
      const task = this.places.scheduled(id)
      if (task !== undefined) this.places.scheduleAt(task, startsAt)
    },
  )

  constructor({ stallMs, reports, ...options }: MemoryStoreOptions) {
    const onEnded = (task: StoredTask): void => {
      reports.ended(task)
      options.onEnded(task)
    }
    this.#reports = reports
    const blockedBy: TaskPlacesOptions['blockedBy'] = ({ services }) => {
      const now = this.#clock.now()
      const service = this.#breakers.blocking(services, now)
      if (service === undefined) return undefined
      const until = this.#breakers.startsAt(service, now)
      return { service, ...(until !== 'none' && { until }) }
    }
    this.places = new TaskPlaces({ ...options, onEnded, blockedBy })
    this.#clock = options.clock
    this.#stallMs = stallMs
  }

  /** Returns how many retries the budget of a definition holds. */
  heldRetries(task: string): number {
    return this.#budgets.held(task, this.#clock.now())
  }

  /** Returns the status of each of these circuit breakers. */
  listBreakers(defined: BreakersOf): readonly BreakerStatus[] {
    const now = this.#clock.now()
    return Object.entries(defined).map(([service, settings]) => this.#breakers.status(service, settings, now))
  }

  /** Sets the mode of a circuit breaker. */
  setBreaker(setting: Omit<SetBreaker, 'queue'>): BreakerStatus {
    const now = this.#clock.now()
    this.#breakers.set(setting, now)
    this.#changed([setting.service], now)
    return this.#breakers.status(setting.service, setting.settings, now)
  }

  /** Wakes the consumers after changes of circuit breakers. */
  #changed(services: readonly string[], now: number): void {
    this.#wakeLater(services, now)
    this.places.wake()
  }

  /** Wakes the consumers when the time has passed for which circuit breakers let no task start. */
  #wakeLater(services: readonly string[], now: number): void {
    for (const service of services) {
      const at = this.#breakers.startsAt(service, now)
      if (at !== 'none' && at > now) this.places.after(at - now, () => this.places.wake())
    }
  }

  /** Adds a new task. */
  add(task: StoredTask): void {
    this.#reports.enqueued(task)
    this.places.add(task)
  }

  /** Returns what the task's running attempt reports to, or undefined if the task has no events. */
  eventsOf(task: StoredTask, owner: Owner): AttemptEvents | undefined {
    return this.#reports.attempt(task, owner)
  }

  /** Fetches the task that starts next. `only`, if given, contains the ids of the tasks that may start. */
  take(owner: Owner, only?: readonly TaskId[]): StoredTask | undefined {
    const task = this.places.next(only)
    if (task === undefined) return undefined
    this.places.activate(task)
    task.owner = owner
    task.fencingToken++
    this.started++
    task.startedAt = this.#clock.now()
    this.#admit(task, task.startedAt)
    return task
  }

  #admit(task: StoredTask, now: number): void {
    if (task.services.length === 0) return
    task.admission = this.#breakers.admit(task.services, now)
    // If this was the last probe, the next one may start when the period is over.
    this.#wakeLater(task.services, now)
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
      this.places.schedule(task, delayMs)
      return true
    }
    this.places.wait(task, 'first', { wake: false })
    // The task is not offered at once, because the consumer that released it would only release it again.
    if (this.#offersAgain) return true
    this.#offersAgain = true
    this.places.after(OFFERED_AGAIN_MS, () => {
      this.#offersAgain = false
      this.places.wake()
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
    if (verdict.kind === 'lost' && record.reason !== 'process_lost') return 'lock_lost'
    if (verdict.kind === 'lost') {
      this.orphan(task, owner)
      return undefined
    }
    addRecord(task, record)
    if (survival === 'lived') task.deaths = 0
    if (survival === 'died') task.deaths++
    // The task was fetched, but its handler was not started.
    if (record.fencingToken === 0) task.fencingToken--
    const { kind } = verdict
    const now = this.#clock.now()
    const startsAt = this.#budgets.ended(result, now)
    if (result.calls !== undefined) {
      this.#breakers.record(result.calls, task.admission, now)
      this.#changed(task.services, now)
    }
    // The event has the attempt's number, so it is reported before the attempt is counted.
    if (startsAt !== undefined) task.dueAt = startsAt
    this.#reports.continued(task, result, now)
    if (record.fencingToken > 0 && kind !== 'requeued' && kind !== 'snoozed') task.attemptsMade++
    if (kind === 'requeued') {
      const { throttleMs, throttled } = verdict
      if (throttleMs !== undefined)
        this.places.throttle(throttleMs, throttled === 'concurrencyKey' ? task.turn?.key : undefined)
      this.places.wait(task, 'first')
    } else if (kind === 'snoozed') this.places.schedule(task, verdict.delayMs)
    else if (startsAt !== undefined) this.places.scheduleAt(task, startsAt)
    else {
      if (kind === 'completed')
        task.output = task.codec === undefined ? asJson(verdict.output) : encodePayload(verdict.output, task.codec)
      if (kind === 'completed') task.added = decodeLines(result.followUps ?? '')
      if (kind === 'dead') task.errorKind = errorKind(record, error, sha256)
      this.places.end(task, kind === 'completed' ? 'completed' : 'failed')
    }
    return undefined
  }

  /**
   * Handles an owner that has died or lost its lock. After `stallMs`, the lost attempt gets a record, and the task waits again, before
   * all others, whatever their priorities. If the owner lives, neither a loss nor a death is counted. Otherwise, the loss is counted, and
   * so is a death, unless the task was in quarantine and did not run in the worker's process. After too many losses, the consumer that
   * fetches the task ends it: see `endPoisoned`.
   */
  orphan(task: StoredTask, owner: Owner, lives = false): void {
    if (task.owner !== owner) return
    task.owner = undefined
    this.places.after(this.#stallMs, () => {
      this.recovered++
      if (!lives) task.losses++
      if (!lives && (task.deaths === 0 || task.alone === task.fencingToken)) task.deaths++
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
      this.#reports.lost(task)
      this.places.wait(task, 'head')
    })
  }

  /** Ends the next task if its owner has died too often for the task to be started again. Returns that task. */
  endPoisoned(only?: readonly TaskId[]): StoredTask | undefined {
    const task = this.places.next(only)
    if (task === undefined || task.losses <= MAX_LOSSES) return undefined
    // The task was fetched, so it has used its key's turn and rate, and may have been a probe.
    this.places.activate(task)
    this.#admit(task, this.#clock.now())
    task.attemptsMade++
    const message = 'the worker was lost'
    task.errorKind = errorKind({ state: 'RECOVER_ERR', reason: 'process_lost', message }, undefined, sha256)
    this.places.end(task, 'failed')
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
    this.places.endCancelled(task, cause)
    return 'cancelled'
  }

  /**
   * Ends every matching task that is not running. A matching task that is running finishes its attempt but is not retried. If the
   * rule includes running tasks, that attempt is stopped.
   */
  cancelWhere(rule: CancelRule): void {
    for (const task of this.places.all) {
      if (task.place === 'completed' || task.place === 'failed' || !matches(rule, candidateOf(task))) continue
      task.cancelledBy ??= rule.id
      if (rule.group !== undefined && rule.group === task.envelope.run?.id) task.isCancelledWithRun = true
      if (task.place === 'active') {
        const cause: CancelCause = { reason: rule.reason, by: rule.by }
        task.cancelRequested ??= cause
        if (stopsRunning(rule)) task.owner?.cancel(cause)
      } else this.places.endCancelled(task, { reason: rule.reason, by: rule.by }, rule.by)
    }
  }

  /** Returns how many tasks the rule ended before they ran, and whether every matching task has ended. */
  progressOf(rule: CancelRule): { readonly ended: number; readonly isDone: boolean } {
    const covered = this.places.all.filter(({ cancelledBy }) => cancelledBy === rule.id)
    return {
      ended: covered.filter(endedBeforeItRan).length + this.places.removedOf(rule.id),
      isDone: covered.every(({ place }) => place === 'completed' || place === 'failed'),
    }
  }

  /** Runs a dead task again, with all its attempts. A repeated call with the same request changes nothing. */
  retry(task: StoredTask, options: RetryOptions, envelope: Envelope): DeadTaskAnswer {
    const { request, by, copy, afterCompensation } = options
    if (task.retries.some((each) => each.request === request)) return 'done'
    if (!isDead(task)) return 'not_dead'
    if (task.compensatedAt !== undefined && !afterCompensation) return 'compensated'
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
    task.isCancelledWithRun = false
    this.#reports.retryRequested(task, by)
    this.places.retry(task)
    return 'done'
  }

  deleteDead(task: StoredTask): DeadTaskAnswer {
    if (!isDead(task)) return 'not_dead'
    this.places.remove(task)
    return 'done'
  }

  /** Ends every task whose queue timeout passed before its first attempt. `more` is true if other tasks may expire later. */
  expire(worker: string): { readonly expired: readonly StoredTask[]; readonly more: boolean } {
    const now = this.#clock.now()
    const unstarted = this.places.all.filter(
      ({ place, fencingToken, expiresAt }) =>
        (place === 'waiting' || place === 'delayed') && fencingToken === 0 && expiresAt !== undefined,
    )
    const expired = unstarted.filter(({ expiresAt = now }) => expiresAt <= now)
    for (const task of expired) {
      addRecord(task, endWithoutStart('queue_timeout', { attempt: 1, process: worker, now }))
      this.places.end(task, 'failed')
    }
    return { expired, more: unstarted.length > expired.length }
  }
}
