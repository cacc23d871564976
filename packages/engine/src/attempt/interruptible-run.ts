// A long handler that waits for something, and may be interrupted meanwhile: signal, grace, freed slot, late result.
import type { Interruption, Slot } from '../pool/slot.ts'
import type { CloseReason, Outcome, StopCause } from '../ports/attempt-result.ts'
import type { Clock } from '../ports/clock.ts'
import type { Attempt } from './attempt.ts'
import { nextTimeoutAt, passedTimeout } from './countdown.ts'
import type { AsyncContext } from './escapes.ts'
import type { Timeouts } from './timeouts.ts'

export interface InterruptibleRunHost {
  readonly clock: Clock
  readonly context: AsyncContext
  /** Handlers that go on although their attempt has ended and their slot is free. */
  readonly stuckHandlers: { add(run: Interruption): void; delete(run: Interruption): void }
}

type Interrupted = Outcome & { kind: 'timed_out' | 'closed' | 'stopped' | 'panicked' }

/** An interruption is what `ctx.signal.reason` holds: an Error named as the platform names its own. */
function reasonFor(outcome: Interrupted): Error {
  switch (outcome.kind) {
    case 'timed_out':
      return new DOMException(`the ${outcome.reason} limit of ${outcome.limitMs} ms passed`, 'TimeoutError')
    case 'closed':
      return new DOMException(`the attempt's context was closed: ${outcome.reason}`, 'AbortError')
    case 'stopped':
      return new DOMException(`the attempt was stopped: ${outcome.reason}`, 'AbortError')
    case 'panicked':
      return new DOMException(`an error escaped the handler: ${outcome.error.message}`, 'AbortError')
  }
}

/**
 * After a drain's signal valid output still counts: its effect happened, and doing it again would double it. After a
 * cancel, a timeout or an escaped error the end is decided at the signal; after a lost lock another owner decides.
 */
function stillCounts(interrupted: Interrupted): boolean {
  if (interrupted.kind === 'closed') return interrupted.reason !== 'lock_lost'
  return interrupted.kind === 'stopped' && interrupted.reason === 'slot_stopped'
}

/**
 * `outcome` is the handler's, or the interruption's: it resolves when the handler ends, or `grace` after the signal,
 * whichever is first. A class, since one is made for every long attempt that waits.
 */
export class InterruptibleRun implements Interruption {
  readonly outcome: Promise<Outcome>
  /** Calls back with how long after its attempt's end, in ms, the handler came back; its result is dropped. */
  onLate: ((overrunMs: number) => void) | undefined
  readonly #attempt: Attempt
  readonly #slot: Slot
  readonly #limits: Timeouts
  readonly #deadlineAt: number | 'none'
  readonly #host: InterruptibleRunHost
  #resolve: (outcome: Outcome) => void = () => {}
  #interrupted: Interrupted | undefined
  #interruptedAt = 0
  #over = false
  #killed = false

  /** `returned`: what the handler gives; never rejects. `deadlineAt`: on the monotonic clock. */
  constructor(
    returned: Promise<Outcome>,
    attempt: Attempt,
    slot: Slot,
    limits: Timeouts,
    deadlineAt: number | 'none',
    host: InterruptibleRunHost,
  ) {
    this.#attempt = attempt
    this.#slot = slot
    this.#limits = limits
    this.#deadlineAt = deadlineAt
    this.#host = host
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
    slot.interruption = this
    attempt.onUncaught((outcome) => this.#interrupt(outcome))
    this.#wait()
    returned.then((outcome) => this.#returned(outcome))
  }

  get timeoutAt(): number | undefined {
    const { timeoutMs } = this.#limits
    return timeoutMs === 'none' ? undefined : this.#attempt.startedAtMonotonic + timeoutMs
  }

  close(reason: CloseReason, graceAtMostMs = Number.POSITIVE_INFINITY): void {
    this.#interrupt({ kind: 'closed', reason }, graceAtMostMs)
  }

  stop(cause: StopCause): void {
    this.#interrupt({ kind: 'stopped', ...cause })
  }

  onTimer(): void {
    if (this.#over) return
    if (this.#interrupted !== undefined) {
      this.#graceOver(this.#interrupted)
      return
    }
    const limit = passedTimeout(this.#countdown(), this.#host.clock.monotonic())
    if (limit === undefined) this.#wait()
    else this.#interrupt({ kind: 'timed_out', ...limit })
  }

  #countdown() {
    const { startedAtMonotonic: startedAt, lastHeartbeatAt } = this.#attempt
    return { startedAt, lastHeartbeatAt, deadlineAt: this.#deadlineAt, timeouts: this.#limits }
  }

  /** Signs of life move no timer: they are looked at when it rings, and it is set again. */
  #wait(): void {
    const next = nextTimeoutAt(this.#countdown())
    if (next === Number.POSITIVE_INFINITY) return
    // Rounded up: a timer that rings a fraction early would only be set again.
    this.#slot.timer.set(Math.max(0, Math.ceil(next - this.#host.clock.monotonic())))
  }

  #interrupt(outcome: Interrupted, graceAtMostMs = Number.POSITIVE_INFINITY): void {
    if (this.#interrupted !== undefined || this.#over) return
    this.#interrupted = outcome
    this.#interruptedAt = this.#host.clock.monotonic()
    const { graceMs } = this.#limits
    const untilKillMs = Math.min(graceMs === 'none' ? Number.POSITIVE_INFINITY : graceMs, graceAtMostMs)
    if (untilKillMs === Number.POSITIVE_INFINITY) this.#slot.timer.clear()
    else this.#slot.timer.set(untilKillMs)
    // In the attempt's own context: what a listener throws is charged to this attempt and not to the worker.
    this.#host.context.run(this.#attempt, () => this.#attempt.abort(reasonFor(outcome)))
  }

  #graceOver(outcome: Interrupted): void {
    this.#killed = this.#attempt.kill()
    if (!this.#killed) this.#host.stuckHandlers.add(this)
    this.#end(outcome)
  }

  #returned(outcome: Outcome): void {
    const interrupted = this.#interrupted
    if (interrupted === undefined) {
      this.#end(outcome)
      return
    }
    const counts = outcome.kind === 'returned' && stillCounts(interrupted) && !this.#over
    // A handler that throws because it was told to end has done as it was told.
    const dropped = this.#over ? !this.#killed : outcome.kind === 'returned' && !counts
    if (dropped) this.onLate?.(this.#host.clock.monotonic() - this.#interruptedAt)
    this.#host.stuckHandlers.delete(this)
    if (!this.#over) this.#end(counts ? outcome : interrupted)
  }

  #end(outcome: Outcome): void {
    this.#over = true
    this.#slot.timer.clear()
    this.#slot.interruption = undefined
    this.#resolve(outcome)
  }
}
