// The engine's clock, from the machine's.
import { performance } from 'node:perf_hooks'
import type { Clock } from '../ports/clock.ts'
import { clockFrom } from '../time/clock.ts'

export const systemClock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout,
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})

/** As the machine's, but for what time it is: `at` is asked for moments of `performance.now()`. */
export function clockOf({ now, at }: Pick<Clock, 'now' | 'at'>): Clock {
  return { ...systemClock, now, at }
}
