// A long attempt whose handler waits for something, and which can be interrupted meanwhile.
//
// The handler's promise and an interruption race. An interruption is a passed timeout, a cancel, a closed context or an
// uncaught error; the first one decides, later ones change nothing. It has three steps:
//   1. The handler's signal aborts, and the grace period begins.
//   2. If the handler returns or throws within the grace period, the attempt ends then.
//   3. If it does not, the attempt ends without it. A handler in an isolate is killed. An inline handler cannot be killed: it
//      is stuck, and what it returns later is dropped and reported as late.
// One timer serves both waits: for the next timeout first, for the end of the grace period afterwards.
import type { AttemptResult, CloseReason, Outcome, StopCause } from '../ports/attempt-result.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Attempt } from './attempt.ts'
import { nextTimeoutAt, passedTimeout, type RunningTimeouts } from './timeouts.ts'
import type { AsyncContext } from './uncaught.ts'

export interface InterruptibleRunHost {
  readonly clock: Clock
  readonly context: AsyncContext
  /** A timer for one run, which closes it. Default: a new one of the clock. */
  readonly timer?: (onFire: () => void) => Timer
  /** An inline handler still runs although its attempt has ended; `returned` resolves when it returns. */
  readonly onStuckHandler?: (returned: Promise<unknown>) => void
}

type Interruption = Outcome & { kind: 'timed_out' | 'closed' | 'stopped' | 'panicked' }

/** What the handler finds in `ctx.signal.reason`: an error with the name that the platform gives its own. */
function abortReason(interruption: Interruption): Error {
  switch (interruption.kind) {
    case 'timed_out':
      return new DOMException(`the ${interruption.reason} limit of ${interruption.limitMs} ms passed`, 'TimeoutError')
    case 'closed':
      return new DOMException(`the attempt's context was closed: ${interruption.reason}`, 'AbortError')
    case 'stopped':
      return new DOMException(`the attempt was stopped: ${interruption.reason}`, 'AbortError')
    case 'panicked':
      return new DOMException(`an error escaped the handler: ${interruption.error.message}`, 'AbortError')
  }
}

/**
 * Whether valid output within the grace period still counts. After a drain or a hard stop of the slot it does: its effect has
 * happened, and a retry would repeat it. After a cancel, a timeout or an uncaught error the end is decided at the signal; after
 * a lost lock another owner decides.
 */
function outputCounts(interruption: Interruption): boolean {
  if (interruption.kind === 'closed') return interruption.reason !== 'lock_lost'
  return interruption.kind === 'stopped' && interruption.reason === 'slot_stopped'
}

/** A class, because one is made for every long attempt that waits. */
export class InterruptibleRun {
  /** Never rejects. */
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
   * `handler`: the outcome of the handler alone; never rejects. `finish` makes the result of the outcome that counts. `onLate` is
   * called when the handler returns output that no longer counts, with the time since the interruption.
   */
  constructor(
    attempt: Attempt,
    handler: Promise<Outcome>,
    host: InterruptibleRunHost,
    finish: (outcome: Outcome) => AttemptResult,
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
    }).then(finish)
    const onTimer = (): void => this.#onTimer()
    this.#timer = host.timer === undefined ? host.clock.timer(onTimer) : host.timer(onTimer)
    attempt.onUncaught((outcome) => this.#interrupt(outcome))
    this.#awaitTimeout()
    handler.then((outcome) => this.#onHandlerEnd(outcome))
  }

  /** When the run timeout passes, on the monotonic clock; undefined when the attempt has none or has ended. */
  get timeoutAt(): number | undefined {
    const { timeoutMs } = this.#attempt.decoded.timeouts
    return timeoutMs === 'none' || this.#hasEnded ? undefined : this.#attempt.startedAtMonotonic + timeoutMs
  }

  /** Closes the attempt's context, with at most `maxGraceMs` of grace. */
  close(reason: CloseReason, maxGraceMs?: number): void {
    this.#interrupt({ kind: 'closed', reason }, maxGraceMs)
  }

  /** As `close`, for a cancel or a hard stop of the slot. False when the attempt has ended. */
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

  /** Heartbeats do not move the timer: they are read when it fires, and it is set again. */
  #awaitTimeout(): void {
    const at = nextTimeoutAt(this.#timeouts())
    if (at === Number.POSITIVE_INFINITY) return
    // Rounded up: a timer that fires a fraction early would only be set again.
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
    // In the attempt's async context, so that an error thrown by an abort listener is attributed to this attempt.
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
    // A handler that throws within the grace period has only obeyed its signal: nothing is late.
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
