// Shuts down a pool. `Drain.run` contains the whole algorithm:
//
//   1. Stop fetching. In a light drain, tasks that are being fetched at this moment are still started. Idle slots stop at once,
//      unless the drain is light. Busy slots stop once their tasks have ended. A stop never becomes softer.
//   2. Wait until the running attempts have ended, or until the deadline passes.
//   3. At the deadline, abort the pool's own signal, which is `ctx.signal` of a short task. A short attempt that ends with the
//      signal's reason counts as closed. Then signal every long attempt: its context closes with the reason 'drain' or
//      'parent_closed'.
//   4. Wait for the grace period, which is the shorter of the definition's and the drain's. If an attempt returns valid output
//      within it, the output counts. Otherwise, the task is requeued, or becomes dead if its definition sets `onInterrupt:
//      'fail'`. A handler that outlasts the grace period is killed if it is isolated, and becomes stuck if it is not. An attempt
//      that was interrupted before the drain keeps the outcome of that interruption. A short attempt cannot be interrupted and is
//      abandoned if it outlasts the grace period.
//   5. Wait, within the limits, until the consumer has committed every result.
//
// Concurrent drains merge: `tighten` may be called at any time and only makes the drain harder. A light drain can become soft, a
// deadline can become earlier, and a grace period can become shorter. Once the attempts have been signalled, their grace period
// no longer changes. The drain itself does not abandon attempts. After `run` has resolved, the pool reports as abandoned the
// tasks that its slots are still running.
import type { CommitRefusal, DrainMode } from '@bullpen/contract'
import type { AttemptResult, CloseReason } from '../ports/attempt-result.ts'
import type { Clock } from '../ports/clock.ts'
import type { Consumer, FetchedTask, NamedTask } from '../ports/consumer.ts'
import type { Slots, Terminating } from './slots.ts'

export interface DrainLimits {
  /** How long running attempts may continue before they are signalled, in ms. */
  readonly drainMs: number | 'none'
  /** How long signalled attempts may take to end, in ms. */
  readonly graceMs: number
  /** Whether tasks that are being fetched are still started. By default, they are released. */
  readonly light?: boolean | undefined
  /** Moves the deadline to the moment when this signal aborts, for example on a second signal to the process. */
  readonly hurry?: AbortSignal | undefined
  /**
   * Set if an error occurred that does not belong to an attempt, in which case anything in this worker may be broken. The pool
   * moves to RECOVER_ERR and drains hard.
   */
  readonly broken?: boolean | undefined
}

/**
 * Returns the limits for a drain mode. `drainMs` applies only to `soft_timeout`. The other modes have either no deadline or an
 * immediate one.
 */
export function drainLimits(
  mode: DrainMode,
  { drainMs, graceMs }: { readonly drainMs: number; readonly graceMs: number },
): DrainLimits {
  switch (mode) {
    case 'light':
      return { drainMs: 'none', graceMs, light: true }
    case 'soft':
      return { drainMs: 'none', graceMs }
    case 'soft_timeout':
      return { drainMs, graceMs }
    case 'hard':
      return { drainMs: 0, graceMs }
  }
}

/**
 * The limits for how long the consumer may take to commit after every attempt has ended, in ms. The consumer has the time left
 * until the end of the grace period, but at most `most` and at least `least`.
 */
export const COMMIT_MS = { most: 1_000, least: 500 }

export interface DrainHost {
  readonly clock: Clock
  readonly slots: Slots
  /** Why attempts are signalled at the deadline. */
  readonly reason: CloseReason
  /** The state of slots that stop softly. */
  readonly softEnd: Terminating
  /** Called at the deadline, before attempts are signalled. */
  readonly onDeadline: () => void
}

export class Drain {
  readonly #host: DrainHost
  readonly #ended = new AbortController()
  readonly #soft = Promise.withResolvers<void>()
  #isLight = true
  #hasBegun = false
  /** When attempts are signalled, on the monotonic clock. */
  #deadlineAt = Number.POSITIVE_INFINITY
  #graceMs = Number.POSITIVE_INFINITY
  #resetTimer = (): void => {}

  constructor(host: DrainHost, limits: DrainLimits) {
    this.#host = host
    this.tighten(limits)
  }

  /** Whether tasks that are being fetched are still started. */
  get isLight(): boolean {
    return this.#isLight
  }

  /** When signalled attempts must have ended, on the monotonic clock, or Infinity if the drain has no deadline. */
  get endsBy(): number {
    return this.#deadlineAt + this.#graceMs
  }

  /** Applies each given limit that is stricter than the current one. */
  tighten({ drainMs, graceMs, light = false, hurry }: DrainLimits): void {
    if (this.#ended.signal.aborted) return
    const now = this.#host.clock.monotonic()
    this.#graceMs = Math.min(this.#graceMs, graceMs)
    if (drainMs !== 'none') this.#deadlineAt = Math.min(this.#deadlineAt, now + drainMs)
    if (!light) this.#soften()
    const onHurry = (): void => {
      this.#deadlineAt = Math.min(this.#deadlineAt, this.#host.clock.monotonic())
      this.#soften()
      this.#resetTimer()
    }
    if (hurry?.aborted) onHurry()
    else hurry?.addEventListener('abort', onHurry, { once: true, signal: this.#ended.signal })
    this.#resetTimer()
  }

  /** Stops the slots. In a light drain, a slot stops only after its current task, or the task being fetched for it, has ended. */
  stopSlots(): void {
    this.#hasBegun = true
    if (this.#isLight) this.#host.slots.endBusy('TERMINATING_TASK_CH_CLOSED')
    else this.#host.slots.end(this.#host.softEnd)
  }

  /** Resolves when every attempt has ended and every result is committed, or when the limits have been reached. */
  async run(consumer: Consumer): Promise<void> {
    const { slots, reason, onDeadline } = this.#host
    // If the consumer fails to stop, its tasks remain uncommitted, and other workers recover them.
    const committed = consumer.stop().catch(() => {})
    if (!(await this.#within(this.#attemptsEnded(committed), () => this.#leftMs()))) {
      this.#isLight = false
      slots.end('TERMINATING_PARENT_CTX_CLOSED')
      onDeadline()
      slots.closeAll(reason, this.#graceMs)
      await this.#within(slots.idle(), this.#graceLeftMs())
    } else if (this.#isLight) {
      slots.end('TERMINATING_TASK_CH_CLOSED')
    }
    await this.#within(committed, this.#commitLeftMs())
  }

  /** Ends the drain. After this, `tighten` has no effect, and no listener is left behind. */
  close(): void {
    this.#ended.abort()
  }

  /** Resolves when every attempt has ended. In a light drain, tasks that are being fetched have to end as well. */
  async #attemptsEnded(committed: Promise<void>): Promise<void> {
    if (this.#isLight) await Promise.race([committed, this.#soft.promise])
    await this.#host.slots.idle()
  }

  #soften(): void {
    if (!this.#isLight) return
    this.#isLight = false
    // Idle slots have been waiting for tasks that are being fetched.
    if (this.#hasBegun) this.#host.slots.end('TERMINATING_STOP_SIGNAL')
    this.#soft.resolve()
  }

  /** Returns the time until attempts are signalled, in ms, or Infinity if there is no deadline. */
  #leftMs(): number {
    return Math.max(0, this.#deadlineAt - this.#host.clock.monotonic())
  }

  /** Fixes the end of the grace period now, so that tightening the drain later does not change it. */
  #graceLeftMs(): () => number {
    const { clock } = this.#host
    const at = clock.monotonic() + this.#graceMs + COMMIT_MS.least
    return () => at - clock.monotonic()
  }

  /**
   * Returns a function that computes how long the consumer may still take to commit. Without a deadline, the consumer may wait
   * until the store is available again.
   */
  #commitLeftMs(): () => number {
    const { clock } = this.#host
    let at = Number.POSITIVE_INFINITY
    return () => {
      const now = clock.monotonic()
      if (this.#deadlineAt < Number.POSITIVE_INFINITY) {
        const leftMs = this.#deadlineAt + this.#graceMs - now
        at = Math.min(at, now + Math.max(COMMIT_MS.least, Math.min(COMMIT_MS.most, leftMs)))
      }
      return at - now
    }
  }

  /**
   * Resolves to true if the promise settles within `leftMs()`, and to false otherwise. `leftMs` is called again whenever the
   * drain is tightened. Only one wait may be active at a time.
   */
  async #within(promise: Promise<unknown>, leftMs: () => number): Promise<boolean> {
    const { promise: timedOut, resolve } = Promise.withResolvers<false>()
    let cancelTimer = (): void => {}
    this.#resetTimer = () => {
      cancelTimer()
      const ms = leftMs()
      cancelTimer = ms === Number.POSITIVE_INFINITY ? () => {} : this.#host.clock.after(ms, () => resolve(false))
    }
    this.#resetTimer()
    const settled = promise.then(
      () => true,
      () => true,
    )
    try {
      return await Promise.race([settled, timedOut])
    } finally {
      cancelTimer()
      this.#resetTimer = () => {}
    }
  }
}

/**
 * The result of a drain. The drain was clean if `abandoned` and `unconfirmed` are empty. Only attempts and tasks whose commit or
 * release the store has confirmed are counted.
 */
export interface DrainReport {
  readonly queue: string
  /** The number of attempts that ended on their own during the drain, with any outcome. */
  readonly finished: number
  /**
   * The number of tasks that returned to their queue because the drain interrupted them or because they had been fetched but not
   * started.
   */
  readonly requeued: number
  /** The number of tasks that failed because the drain interrupted them and their definition sets `onInterrupt: 'fail'`. */
  readonly failed: number
  /**
   * Tasks whose attempts are still running, or were interrupted because the worker is broken. Other workers recover these tasks after
   * their locks have expired.
   */
  readonly abandoned: readonly NamedTask[]
  /**
   * Tasks whose attempts have ended but whose commits the store has neither confirmed nor refused. These tasks may run again.
   */
  readonly unconfirmed: readonly NamedTask[]
  /**
   * The time from the start of the drain to the last commit that the store confirmed or refused, or to the end of the drain if a
   * task was abandoned or is unconfirmed.
   */
  readonly slowestTaskMs: number
}

export class DrainTally {
  readonly #startedAt: number
  #finished = 0
  /** A busy store may hand out a task again that has just returned to its queue. */
  readonly #requeued = new Set<string>()
  #failed = 0
  #slowestTaskMs = 0
  readonly #lost: NamedTask[] = []

  /** All times are on the monotonic clock. */
  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  settled({ event, record, verdict }: AttemptResult, refusal: CommitRefusal | undefined, at: number): void {
    this.#slowestTaskMs = at - this.#startedAt
    if (record.reason === 'process_lost') this.#lost.push({ id: event.id, task: event.task })
    // Another worker owns the task, so the task's end is not part of this drain.
    if (refusal !== undefined || verdict.kind === 'lost') return
    if (verdict.kind === 'requeued') this.#requeued.add(event.id)
    else if (record.reason === 'drain' || record.reason === 'parent_closed') this.#failed++
    else this.#finished++
  }

  released(id: string): void {
    this.#requeued.add(id)
  }

  /**
   * Returns the report. `uncommitted` is the list of the consumer's tasks whose commits the store has not confirmed. It may
   * include running tasks.
   */
  report(queue: string, running: readonly FetchedTask[], uncommitted: readonly NamedTask[], at: number): DrainReport {
    const named = ({ id, task }: NamedTask): NamedTask => ({ id, task })
    const runningIds = new Set<string>(running.map(({ id }) => id))
    const unconfirmed = uncommitted.filter(({ id }) => !runningIds.has(id)).map(named)
    const isIncomplete = running.length > 0 || unconfirmed.length > 0
    return {
      queue,
      finished: this.#finished,
      requeued: this.#requeued.size,
      failed: this.#failed,
      abandoned: [...this.#lost, ...running.map(named)],
      unconfirmed,
      slowestTaskMs: Math.round(isIncomplete ? at - this.#startedAt : this.#slowestTaskMs),
    }
  }
}
