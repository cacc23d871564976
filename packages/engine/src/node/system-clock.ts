// The engine's clock, from the machine's.
import { performance } from 'node:perf_hooks'
import { clockFrom } from '../clock.ts'

export const systemClock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout,
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})
