// Runs a long attempt whose handler is waiting for something and can be interrupted in the meantime.
//
// The handler's promise races against interruptions: an expired timeout, a cancellation, a closed context or an uncaught error.
// The first interruption determines the outcome, and later ones have no effect. An interruption has three steps:
//   1. The handler's signal aborts, and the grace period begins.
//   2. If the handler returns or throws within the grace period, the attempt ends at that moment.
//   3. Otherwise, the attempt ends without waiting for the handler. A handler in an isolate is killed. An inline handler cannot
//      be killed, so it becomes a stuck handler. If it returns later, its result is discarded and reported as late.
// One timer is used for both waits: first for the next timeout, and then for the end of the grace period.
import type { AttemptResult, CloseReason, Outcome, StopCause } from '../ports/attempt-result.ts'
import type { Timer } from '../ports/clock.ts'
import { describeOutcome } from '../verdict/outcome.ts'
import { messageOf } from '../verdict/thrown.ts'
import type { Attempt } from './attempt.ts'
import { type FinishHost, finish } from './finish.ts'
import { nextTimeoutAt, passedTimeout, type RunningTimeouts } from './timeouts.ts'
import type { AsyncContext } from './uncaught.ts'

export interface InterruptibleRunHost extends FinishHost {
  readonly context: AsyncContext
  /** Provides the timer for one run. The run closes the timer when the run ends. By default, the clock creates a new timer. */
  readonly timer?: (onFire: () => void) => Timer
  /**
   * Called when an inline handler is still running after its attempt has ended. `returned` resolves when the handler returns.
   */
  readonly onStuckHandler?: (returned: Promise<unknown>) => void
}

type Interruption = Outcome & { kind: 'timed_out' | 'closed' | 'stopped' | 'panicked' }

/**
 * Returns the error that the handler finds in `ctx.signal.reason`. Its `name` is the platform's standard name for that kind of
 * error, such as `TimeoutError`.
 */
function abortReason(interruption: Interruption): Error {
  switch (interruption.kind) {
    case 'timed_out':
      return new DOMException(describeOutcome(interruption).message, 'TimeoutError')
    case 'closed':
    case 'stopped':
      return new DOMException(describeOutcome(interruption).message, 'AbortError')
    case 'panicked':
      return new DOMException(`an error escaped the handler: ${messageOf(interruption.error)}`, 'AbortError')
  }
}

/**
 * Returns whether valid output still counts if the handler returns it within the grace period. Output counts after a drain or a
 * hard stop of the slot, because the side effects have happened and a retry would repeat them. Output does not count after a
 * cancellation, a timeout or an uncaught error, because the outcome was decided when the signal aborted, nor after a lost lock,
 * because the lock's new owner decides the outcome.
 */
function outputCounts(interruption: Interruption): boolean {
  if (interruption.kind === 'closed') return interruption.reason !== 'lock_lost'
  return interruption.kind === 'stopped' && interruption.reason === 'slot_stopped'
}

/** One interruptible attempt. This is a class because an instance is created for every long attempt that waits. */
export class InterruptibleRun {
  /** Resolves to the attempt's result. The promise never rejects. */
  readonly result: Promise<AttemptResult>
  readonly #attempt: Attempt
  readonly #handler: Promise<Outcome>
  readonly #host: InterruptibleRunHost
  readonly #onLate: (overrunMs: number) => void
  readonly #timer: Timer
  /** On the monotonic clock. */
  readonly #totalTimeoutAt: number | 'none'
  #resolve: (outcome: Outcome) => void = () => {}
  #interruption: Interruption | undefined
  #interruptedAt = 0
  #hasEnded = false
  #isKilled = false

  /**
   * `handler` is the promise of the handler's own outcome and never rejects. `onLate` is called when the handler returns output
   * that no longer counts. Its argument is the time since the interruption, in ms.
   */
  constructor(
    attempt: Attempt,
    handler: Promise<Outcome>,
    host: InterruptibleRunHost,
    onLate: (overrunMs: number) => void,
  ) {
    const { startedAtMonotonic, decoded } = attempt
    this.#attempt = attempt
    this.#handler = handler
    this.#host = host
    this.#onLate = onLate
    this.#totalTimeoutAt =
      decoded.totalTimeoutAt === 'none'
        ? 'none'
        : startedAtMonotonic + (decoded.totalTimeoutAt - host.clock.at(startedAtMonotonic))
    this.result = new Promise<Outcome>((resolve) => {
      this.#resolve = resolve
    }).then((outcome) => finish(attempt, outcome, host))
    const onTimer = (): void => this.#onTimer()
    this.#timer = host.timer === undefined ? host.clock.timer(onTimer) : host.timer(onTimer)
    this.#awaitTimeout()
    attempt.onUncaught((outcome) => this.#interrupt(outcome))
    handler.then((outcome) => this.#onHandlerEnd(outcome))
  }

  /** When the run timeout expires, on the monotonic clock. Undefined if the attempt has no run timeout or has ended. */
  get timeoutAt(): number | undefined {
    const { timeoutMs } = this.#attempt.decoded.timeouts
    return timeoutMs === 'none' || this.#hasEnded ? undefined : this.#attempt.startedAtMonotonic + timeoutMs
  }

  /** Closes the attempt's context. The grace period is at most `maxGraceMs`. */
  close(reason: CloseReason, maxGraceMs?: number): void {
    this.#interrupt({ kind: 'closed', reason }, maxGraceMs)
  }

  /** Works like `close`, but for a cancellation or a hard stop of the slot. Returns false if the attempt has ended. */
  stop(cause: StopCause): boolean {
    this.#interrupt({ kind: 'stopped', reason: cause.reason, by: cause.by })
    return !this.#hasEnded
  }

  #onTimer(): void {
    if (this.#hasEnded) return
    if (this.#interruption !== undefined) {
      this.#onGraceOver(this.#interruption)
      return
    }
    const passed = passedTimeout(this.#timeouts(), this.#host.clock.monotonic())
    if (passed === undefined) this.#awaitTimeout()
    else this.#interrupt({ kind: 'timed_out', ...passed })
  }

  #timeouts(): RunningTimeouts {
    const { decoded, startedAtMonotonic: startedAt, lastHeartbeatAt } = this.#attempt
    return { timeouts: decoded.timeouts, startedAt, lastHeartbeatAt, totalTimeoutAt: this.#totalTimeoutAt }
  }

  /**
   * Sets the timer for the next timeout. Heartbeats do not move the timer. When the timer fires, the run checks the last
   * heartbeat and, if necessary, sets the timer again.
   */
  #awaitTimeout(): void {
    const at = nextTimeoutAt(this.#timeouts())
    if (at === Number.POSITIVE_INFINITY) return
    // The delay is rounded up because a timer that fires a fraction of a millisecond early would only be set again.
    this.#timer.set(Math.max(0, Math.ceil(at - this.#host.clock.monotonic())))
  }

  #interrupt(interruption: Interruption, maxGraceMs = Number.POSITIVE_INFINITY): void {
    if (this.#interruption !== undefined || this.#hasEnded) return
    this.#interruption = interruption
    this.#interruptedAt = this.#host.clock.monotonic()
    const { graceMs } = this.#attempt.decoded.timeouts
    const graceLeftMs = Math.min(graceMs === 'none' ? Number.POSITIVE_INFINITY : graceMs, maxGraceMs)
    if (graceLeftMs === Number.POSITIVE_INFINITY) this.#timer.clear()
    else this.#timer.set(graceLeftMs)
    // This runs in the attempt's async context, so that an error thrown by an abort listener is attributed to this attempt.
    this.#host.context.run(this.#attempt, () => this.#attempt.abort(abortReason(interruption)))
  }

  #onGraceOver(interruption: Interruption): void {
    this.#isKilled = this.#attempt.kill()
    if (!this.#isKilled) this.#host.onStuckHandler?.(this.#handler)
    this.#end(interruption)
  }

  #onHandlerEnd(outcome: Outcome): void {
    const interruption = this.#interruption
    if (interruption === undefined) {
      this.#end(outcome)
      return
    }
    const returned = outcome.kind === 'returned'
    const counts = returned && !this.#hasEnded && outputCounts(interruption)
    // A handler that throws within the grace period has followed its signal, so it is not late.
    const isLate = this.#hasEnded ? !this.#isKilled : returned && !counts
    if (isLate) this.#onLate(this.#host.clock.monotonic() - this.#interruptedAt)
    if (!this.#hasEnded) this.#end(counts ? outcome : interruption)
  }

  #end(outcome: Outcome): void {
    this.#hasEnded = true
    this.#timer.close()
    this.#resolve(outcome)
  }
}
