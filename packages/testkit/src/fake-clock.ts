// A clock that stands still until a test moves it, and calls timers back in their order when it does.
import type { Clock } from '@bullpen/engine/internal'

export interface FakeClock extends Clock {
  /** Moves time on, firing what is due at its own moment, and lets promises settle in between. */
  advance(ms: number): Promise<void>
  /** Milliseconds until the next timer fires; undefined when there is none. */
  next(): number | undefined
  /** Timers that are neither fired nor stopped. */
  pending(): number
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** Taken now, since a test may put fake timers into its place later. */
const { setImmediate } = globalThis

/** `start`: its first moment, in ms since 1970. */
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

/** A turn of the event loop: every promise that can settle has settled. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
