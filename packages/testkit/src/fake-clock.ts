// A clock that moves only when a test moves it. Timers fire in order while the clock moves, and never at any other time.
import type { Clock } from '@bullpen/engine/internal'

export interface FakeClock extends Clock {
  /** Moves the clock forward by `ms`. Each timer that is due fires at its own time, and promises settle after each one. */
  advance(ms: number): Promise<void>
  /** Returns the milliseconds until the next timer fires, or undefined if there is none. */
  next(): number | undefined
  /** Returns how many timers are set. */
  pending(): number
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** This is read when the file is loaded because a test may replace it with fake timers later. */
const { setImmediate } = globalThis

/** Creates a clock that a test moves. `start` is its initial time, in ms since 1970. */
export function fakeClock(start = 1_700_000_000_000): FakeClock {
  let now = start
  const timers = new Set<Timer>()
  const first = () =>
    [...timers].reduce<Timer | undefined>((a, b) => (a === undefined || b.at < a.at ? b : a), undefined)
  const due = (until: number) => [first()].find((timer) => timer !== undefined && timer.at <= until)
  const after = (ms: number, callback: () => void): (() => void) => {
    const timer = { at: now + ms, callback }
    timers.add(timer)
    return () => timers.delete(timer)
  }
  return {
    now: () => now,
    monotonic: () => now - start,
    at: (monotonic) => start + monotonic,
    after,
    timer(ring) {
      let stop = (): void => {}
      return {
        set(ms) {
          stop()
          stop = after(ms, ring)
        },
        clear: () => stop(),
        close: () => stop(),
      }
    },
    async advance(ms) {
      const until = now + ms
      await settle()
      for (let timer = due(until); timer !== undefined; timer = due(until)) {
        now = timer.at
        timers.delete(timer)
        timer.callback()
        await settle()
      }
      now = until
    },
    next() {
      const timer = first()
      return timer && Math.max(0, timer.at - now)
    },
    pending: () => timers.size,
  }
}

/** Waits for one turn of the event loop, in which every promise that can settle does so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
