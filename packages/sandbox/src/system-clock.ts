// The engine's clock, from the machine's.
import { performance } from 'node:perf_hooks'
import { clockFrom } from '@bullpen/engine'

export const systemClock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout,
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})
