// Moves a fake clock for a run, until nothing more can happen by time alone.
import type { FakeClock } from '../fake-clock.ts'
import { realTime } from '../real-time.ts'

export interface Drive {
  readonly clock: FakeClock
  /** While a handler runs, time is real. */
  readonly real: boolean
  /** On the monotonic clock: not beyond it. */
  readonly until: number
  /** How long, in real ms, a handler may run that no timer of the clock would end. */
  readonly patienceMs: number
  readonly isOver: () => boolean
  readonly isRunning: () => boolean
}

/** How often, in real ms, a handler is looked at that waits for something real. */
const LOOK_EVERY_MS = 1

/** @throws Error for a handler that still runs, where no time would end it, after the patience. */
export async function runUntilIdle({ clock, real, until, patienceMs, isOver, isRunning }: Drive): Promise<void> {
  let waitedMs = 0
  for (;;) {
    await clock.advance(0)
    if (isOver()) return
    const next = clock.next()
    const inTime = next !== undefined && clock.monotonic() + next <= until
    if (isRunning() && (real || next === undefined)) {
      const began = realTime.now()
      await realTime.wait(LOOK_EVERY_MS)
      const ms = realTime.now() - began
      if (real) await clock.advance(ms)
      waitedMs += ms
      if (real ? clock.monotonic() > until : waitedMs > patienceMs) throw tooLong(waitedMs)
    } else if (inTime) await clock.advance(next)
    else return
  }
}

function tooLong(waitedMs: number): Error {
  return new Error(`the handler still runs after ${Math.round(waitedMs)} ms of real time, and no time limit ends it`)
}
