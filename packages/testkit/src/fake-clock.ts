// A clock that a test moves. Timers fire in their order while it moves, and never in between.
import type { Clock } from '@bullpen/engine/internal'

export interface FakeClock extends Clock {
  /** Moves the time by `ms`, fires each timer that is due at its own time, and lets promises settle after each. */
  advance(ms: number): Promise<void>
  /** Milliseconds until the next timer fires; undefined if there is none. */
  next(): number | undefined
  /** How many timers are set. */
  pending(): number
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** Taken at load: a test may replace it with fake timers later. */
const { setImmediate } = globalThis

/** `start`: the first time that it shows, in ms since 1970. */
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

/** Waits for a turn of the event loop, in which every promise that can settle does. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
