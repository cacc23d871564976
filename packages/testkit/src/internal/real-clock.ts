// The clock that programs have.
import { type Clock, clockFrom } from '@bullpen/engine'

export function realClock(): Clock {
  return clockFrom({
    now: Date.now,
    monotonic: () => performance.now(),
    setTimeout,
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  })
}
