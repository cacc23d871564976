// Implements the engine's clock on Node with the machine's clocks.
import { performance } from 'node:perf_hooks'
import type { Clock } from '../ports/clock.ts'
import { clockFrom } from '../time/clock.ts'

export const systemClock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout,
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})

/** Returns the system clock with a different source for the time of day. `at` is called with values of `performance.now()`. */
export function clockOf({ now, at }: Pick<Clock, 'now' | 'at'>): Clock {
  return { ...systemClock, now, at }
}
