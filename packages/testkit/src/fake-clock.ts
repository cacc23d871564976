// A clock that stands still until a test moves it, and calls timers back in their order when it does.
import type { Clock } from '@bullpen/engine'

export interface FakeClock extends Clock {
  /** Moves time on, firing what is due at its own moment, and lets promises settle in between. */
  advance(ms: number): Promise<void>
  /** Timers that are neither fired nor stopped. */
  pending(): number
}

export function fakeClock(start = 1_700_000_000_000): FakeClock {
  let now = start
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>()
  const next = (until: number) => [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
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
      for (let timer = next(until); timer !== undefined; timer = next(until)) {
        now = timer.at
        timers.delete(timer)
        timer.callback()
        await settle()
      }
      now = until
    },
    pending: () => timers.size,
  }
}

/** A turn of the event loop: every promise that can settle has settled. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
