// A shelf: the tasks of one queue in memory, in the order in which they run, and every move that they make.
import type { AttemptRecord } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import {
  type CancelCause,
  type CancelOptions,
  type CancelRule,
  type Clock,
  endWithoutStart,
  MAX_DEATHS,
  matches,
  stopsRunning,
  type Verdict,
} from '@bullpen/engine/internal'
import { aboutOf, asJson, type Owner, type Place, recordEnd, type StoredTask } from './stored-task.ts'

export interface ShelfOptions {
  readonly clock: Clock
  /** From the loss of its owner until a task is found again, in ms. */
  readonly stallMs: number
  /** Hears of each task that has reached its end. */
  readonly onEnded: (task: StoredTask) => void
}

/** Until a task that was refused is offered again, about as long as a round trip takes. */
const REFUSED_MS = 10

export class MemoryStore {
  readonly #clock: Clock
  readonly #stallMs: number
  readonly #onEnded: (task: StoredTask) => void
  readonly #tasks: StoredTask[] = []
  /** The next to run is the first. */
  readonly #waiting: StoredTask[] = []
  /** Tells those who take that there may be something. */
  readonly #takers = new Set<() => void>()
  readonly #timers = new Set<() => void>()
  #offersAgain = false
  /** Nothing is taken before. */
  #heldUntil = Number.NEGATIVE_INFINITY

  constructor({ clock, stallMs, onEnded }: ShelfOptions) {
    this.#clock = clock
    this.#stallMs = stallMs
    this.#onEnded = onEnded
  }

  add(task: StoredTask): void {
    this.#tasks.push(task)
    this.#schedule(task, task.delayMs === 0 ? 0 : task.enqueuedAt + task.delayMs - this.#clock.now())
  }

  /** In the order in which they run, become due, or ended. */
  in(place: Place): readonly StoredTask[] {
    if (place === 'waiting') return this.#waiting
    const order = ({ dueAt, endedAt, startedAt }: StoredTask): number => dueAt ?? endedAt ?? startedAt ?? 0
    return this.#tasks.filter((task) => task.place === place).sort((a, b) => order(a) - order(b))
  }

  /** The returned function ends it. */
  onReady(take: () => void): () => void {
    this.#takers.add(take)
    return () => this.#takers.delete(take)
  }

  /** Tells those who take to look again. */
  wake(): void {
    for (const take of this.#takers) take()
  }

  take(owner: Owner): StoredTask | undefined {
    if (this.#clock.now() < this.#heldUntil) return undefined
    const task = this.#waiting.shift()
    if (task === undefined) return undefined
    task.place = 'active'
    task.owner = owner
    task.fencingToken++
    task.startedAt = this.#clock.now()
    return task
  }

  /** As if it had not been taken. */
  refuse(task: StoredTask, owner: Owner): void {
    if (task.owner !== owner) return
    task.fencingToken--
    this.#wait(task, 'first', 'quietly')
    // Later, and not at once: who refuses now would refuse again.
    if (this.#offersAgain) return
    this.#offersAgain = true
    this.#after(REFUSED_MS, () => {
      this.#offersAgain = false
      this.wake()
    })
  }

  /** Obeys the verdict on a start, unless somebody else has the task by now. */
  obey(task: StoredTask, owner: Owner, verdict: Verdict, end: AttemptRecord): void {
    if (task.owner !== owner || verdict.kind === 'lost') return
    recordEnd(task, end)
    // It was taken, and came to no start.
    if (end.fencingToken === 0) task.fencingToken--
    const { kind } = verdict
    if (end.fencingToken > 0 && kind !== 'requeued' && kind !== 'snoozed') task.attemptsMade++
    if (kind === 'requeued') {
      if (verdict.throttleMs !== undefined) this.#hold(verdict.throttleMs)
      this.#wait(task, 'first')
    } else if (kind === 'snoozed') this.#schedule(task, verdict.delayMs)
    else if (kind === 'retrying') this.#schedule(task, verdict.delayMs)
    else {
      if (kind === 'completed') task.output = asJson(verdict.output)
      this.#end(task, kind === 'completed' ? 'completed' : 'failed')
    }
  }

  /** Its owner is no more, or has it no more: it is found again after a while, and a death counted. */
  orphan(task: StoredTask, owner: Owner): void {
    if (task.owner !== owner) return
    task.owner = undefined
    this.#after(this.#stallMs, () => {
      task.deaths++
      if (task.deaths <= MAX_DEATHS) {
        this.#wait(task, 'first')
        return
      }
      const now = this.#clock.now()
      task.attemptsMade++
      recordEnd(task, {
        fencingToken: task.fencingToken,
        attempt: task.attemptsMade,
        counted: true,
        state: 'RECOVER_ERR',
        reason: 'process_lost',
        message: 'the processes that ran it died too often',
        worker: 'unknown',
        startedAt: task.startedAt ?? now,
        endedAt: now,
      })
      this.#end(task, 'failed')
    })
  }

  /** Ends what waits; asks whoever runs it. */
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

  /** Ends all that the rule covers and nobody runs, tells who runs one, and lets none of these start again. */
  cancelWhere(rule: CancelRule): void {
    for (const task of this.#tasks) {
      if (task.place === 'completed' || task.place === 'failed' || !matches(rule, aboutOf(task))) continue
      task.cancelledBy ??= rule.id
      if (task.place === 'active') {
        const cause: CancelCause = { reason: rule.reason, by: rule.by }
        task.cancelRequested ??= cause
        if (stopsRunning(rule)) task.owner?.cancel(cause)
      } else this.#endCancelled(task, { reason: rule.reason, by: rule.by }, rule.by)
    }
  }

  /** How many were ended that nobody ran, and whether any runs yet. */
  progressOf(rule: CancelRule): { readonly ended: number; readonly isDone: boolean } {
    const covered = this.#tasks.filter(({ cancelledBy }) => cancelledBy === rule.id)
    return {
      ended: covered.filter(({ place, attempts }) => place === 'failed' && attempts.at(-1)?.fencingToken === 0).length,
      isDone: covered.every(({ place }) => place === 'completed' || place === 'failed'),
    }
  }

  /** Ends what should have been started by now and never was. Returns those, and whether any may follow. */
  expire(process: string): { readonly expired: readonly StoredTask[]; readonly more: boolean } {
    const now = this.#clock.now()
    const unstarted = this.#tasks.filter(
      ({ place, fencingToken, expiresAt }) =>
        (place === 'waiting' || place === 'delayed') && fencingToken === 0 && expiresAt !== undefined,
    )
    const expired = unstarted.filter(({ expiresAt = now }) => expiresAt <= now)
    for (const task of expired) {
      const waits = this.#waiting.indexOf(task)
      if (waits >= 0) this.#waiting.splice(waits, 1)
      recordEnd(task, endWithoutStart('queue_timeout', { attempt: 1, process, now }))
      this.#end(task, 'failed')
    }
    return { expired, more: unstarted.length > expired.length }
  }

  /** Nothing of it happens any more. */
  close(): void {
    for (const stop of this.#timers) stop()
    this.#timers.clear()
  }

  /** Several extend it, none shortens it. */
  #hold(ms: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, this.#clock.now() + ms)
    this.#after(ms, () => this.wake())
  }

  #endCancelled(task: StoredTask, { reason, by }: CancelCause, process = 'memory'): void {
    const waits = this.#waiting.indexOf(task)
    if (waits >= 0) this.#waiting.splice(waits, 1)
    const now = this.#clock.now()
    recordEnd(task, endWithoutStart(reason, { attempt: task.attemptsMade + 1, process, now, by }))
    this.#end(task, 'failed')
  }

  #wait(task: StoredTask, where: 'first' | 'last', quietly?: 'quietly'): void {
    if (task.cancelRequested !== undefined) {
      this.#endCancelled(task, task.cancelRequested)
      return
    }
    task.place = 'waiting'
    task.owner = undefined
    task.dueAt = undefined
    if (where === 'first') this.#waiting.unshift(task)
    else this.#waiting.push(task)
    if (quietly === undefined) this.wake()
  }

  /** Nothing to wait for: it is ready at once, behind the others. */
  #schedule(task: StoredTask, delayMs: number): void {
    if (delayMs <= 0 || task.cancelRequested !== undefined) {
      this.#wait(task, 'last')
      return
    }
    task.place = 'delayed'
    task.owner = undefined
    task.dueAt = this.#clock.now() + delayMs
    this.#after(delayMs, () => {
      if (task.place === 'delayed') this.#wait(task, 'last')
    })
  }

  #end(task: StoredTask, place: 'completed' | 'failed'): void {
    task.place = place
    task.owner = undefined
    task.dueAt = undefined
    task.endedAt = this.#clock.now()
    this.#onEnded(task)
  }

  #after(ms: number, then: () => void): void {
    const stop = this.#clock.after(ms, () => {
      this.#timers.delete(stop)
      then()
    })
    this.#timers.add(stop)
  }
}
