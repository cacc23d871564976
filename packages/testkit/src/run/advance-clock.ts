// Moves a fake clock until the run is over or no timer is left that could change anything.
import type { FakeClock } from '../fake-clock.ts'
import { realTime } from '../real-time.ts'

export interface IdleOptions {
  readonly clock: FakeClock
  /** Whether time is real while a handler runs. */
  readonly real: boolean
  /** The end of the run, on the monotonic clock. */
  readonly until: number
  /** How long a handler that no timer of the clock would end may run, in real ms. */
  readonly patienceMs: number
  readonly isOver: () => boolean
  readonly isRunning: () => boolean
}

/** How often to check a handler that is waiting for something real, in real ms. */
const POLL_INTERVAL_MS = 1

/** @throws Error if a handler that no timeout would end is still running after `patienceMs`. */
export async function runUntilIdle({ clock, real, until, patienceMs, isOver, isRunning }: IdleOptions): Promise<void> {
  let waitedMs = 0
  for (;;) {
    await clock.advance(0)
    if (isOver()) return
    const next = clock.next()
    const inTime = next !== undefined && clock.monotonic() + next <= until
    if (isRunning() && (real || next === undefined)) {
      const startedAt = realTime.now()
      await realTime.wait(POLL_INTERVAL_MS)
      const ms = realTime.now() - startedAt
      if (real) await clock.advance(ms)
      waitedMs += ms
      if (waitedMs > patienceMs || (real && clock.monotonic() > until)) throw stillRunning(waitedMs)
    } else if (inTime) await clock.advance(next)
    else return
  }
}

function stillRunning(waitedMs: number): Error {
  return new Error(
    `the handler is still running after ${Math.round(waitedMs)} ms of real time, and no timeout ends it; give the task a timeout, or make the handler return`,
  )
}
