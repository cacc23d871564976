// Running a long handler that its timer or its pool may interrupt: signal, grace, freed slot, late result.
import type { EndReason } from '@bullpen/contract'
import { startCountdown } from './countdown.ts'
import type { AttemptLimits } from './limits.ts'
import { escaped, type Outcome } from './outcome.ts'
import type { Clock } from './ports.ts'

/** A running long attempt, as its pool sees it. */
export interface Interruption {
  /** Closes the attempt's context: the handler is signalled and has the grace period to end. Twice is once. */
  close(reason: EndReason<'TERMINATED_CTX_CLOSED'>): void
  /** An error escaped the handler: the attempt's end is decided, and the handler is signalled. */
  escape(error: unknown): void
}

export interface TimedRun {
  /** Runs the handler; never rejects. `beat` is its sign of life, `escaping` hears of what it threw elsewhere. */
  readonly call: (beat: () => void, escaping: (error: unknown) => void) => Promise<Outcome>
  readonly limits: AttemptLimits
  readonly clock: Clock
  readonly interruptible: Set<Interruption>
  /** Aborts the handler's signal. */
  readonly signal: (reason: Error) => void
  /** The grace is over and the handler still runs. True: it was killed, and nothing comes back from it. */
  readonly kill: () => boolean
  /** The handler came back, this long after its attempt had ended, with a result that is dropped. */
  readonly late: (overrunMs: number) => void
}

type Interrupted = Outcome & { kind: 'timed_out' | 'closed' | 'panicked' }

/** An interruption is what `ctx.signal.reason` holds: an Error named as the platform names its own. */
function reasonFor(outcome: Interrupted): Error {
  switch (outcome.kind) {
    case 'timed_out':
      return new DOMException(`the ${outcome.reason} limit of ${outcome.limitMs} ms passed`, 'TimeoutError')
    case 'closed':
      return new DOMException(`the attempt's context was closed: ${outcome.reason}`, 'AbortError')
    case 'panicked':
      return new DOMException(`an error escaped the handler: ${outcome.error.message}`, 'AbortError')
  }
}

/**
 * The handler's outcome, or the interruption's. Resolves when the handler ends, or `grace` after the signal, whichever is
 * first: then the slot is free although the handler may still run.
 *
 * After a timeout or an escaped error the end is decided at the signal, and whatever the handler returns later is a late result. After a
 * close, valid output within the grace still counts: its effect happened, and doing it again would double it.
 */
export function runTimed({ call, limits, clock, interruptible, signal, kill, late }: TimedRun): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  let interrupted: Interrupted | undefined
  let over = false
  let killed = false
  let endedAt = 0
  let stopGrace = (): void => {}

  const end = (outcome: Outcome): void => {
    countdown.stop()
    stopGrace()
    interruptible.delete(interruption)
    over = true
    resolve(outcome)
  }
  const graceOver = (outcome: Outcome): void => {
    killed = kill()
    end(outcome)
  }
  const interrupt = (outcome: Interrupted): void => {
    if (interrupted !== undefined || over) return
    interrupted = outcome
    endedAt = clock.monotonic()
    countdown.stop()
    if (limits.graceMs !== 'none') stopGrace = clock.after(limits.graceMs, () => graceOver(outcome))
    signal(reasonFor(outcome))
  }
  const interruption: Interruption = {
    close: (reason) => interrupt({ kind: 'closed', reason }),
    escape: (error) => interrupt(escaped(error)),
  }
  const returned = (outcome: Outcome): void => {
    if (interrupted === undefined) {
      end(outcome)
      return
    }
    const counts = interrupted.kind === 'closed' && outcome.kind === 'returned' && !over
    // A handler that throws because it was told to end has done as it was told.
    const dropped = over ? !killed : outcome.kind === 'returned' && !counts
    if (dropped) late(clock.monotonic() - endedAt)
    if (!over) end(counts ? outcome : interrupted)
  }

  interruptible.add(interruption)
  const countdown = startCountdown(limits, clock, (limit) => interrupt({ kind: 'timed_out', ...limit }))
  call(countdown.beat, interruption.escape).then(returned)
  return promise
}
