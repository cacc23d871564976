// The engine's clock, from the machine's; its timers are seconds at most.
import { performance } from 'node:perf_hooks'
import type { Clock } from '@bullpen/engine'

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}
