// The engine's clock, from the machine's.
import { performance } from 'node:perf_hooks'
import type { Clock } from '@bullpen/engine'

/** The longest time that Node's timers count; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, callback) {
    const step = (rest: number): void => {
      timer = setTimeout(
        () => (rest > LONGEST_TIMER_MS ? step(rest - LONGEST_TIMER_MS) : callback()),
        Math.min(rest, LONGEST_TIMER_MS),
      )
    }
    let timer: NodeJS.Timeout
    step(ms)
    return () => clearTimeout(timer)
  },
}
