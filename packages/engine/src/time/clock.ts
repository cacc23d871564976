// Builds the engine's clock from a platform's functions.
import type { Clock, Timer } from '../ports/clock.ts'

/**
 * The platform's functions. On Node, they are `{ now: Date.now, monotonic: () => performance.now(), setTimeout, clearTimeout }`.
 */
export interface Platform {
  readonly now: () => number
  readonly monotonic: () => number
  readonly setTimeout: (callback: () => void, ms: number) => { refresh(): unknown }
  readonly clearTimeout: (timer: { refresh(): unknown }) => void
}

/** The longest delay that Node's timers support. A timer with a longer delay would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * How long the offset between the two clocks is reused, in ms. This time is limited because the wall clock may be set at any
 * moment.
 */
const TRUSTED_FOR_MS = 1_000

export function clockFrom(platform: Platform): Clock {
  const { now, monotonic } = platform
  let offset = now() - monotonic()
  let trustedUntil = monotonic() + TRUSTED_FOR_MS
  return {
    now,
    monotonic,
    at(moment) {
      if (moment > trustedUntil) {
        const read = monotonic()
        offset = now() - read
        trustedUntil = read + TRUSTED_FOR_MS
      }
      return offset + moment
    },
    after(ms, callback) {
      const timer = repeatedTimer(platform, callback)
      timer.set(ms)
      return timer.close
    },
    timer: (onFire) => repeatedTimer(platform, onFire),
  }
}

/**
 * Creates a timer that can be set repeatedly. Setting it to the same delay again, which is common for attempts with one timeout,
 * only refreshes the platform's timer. Clearing the timer does not cancel the platform's timer, because it is cheaper to let that
 * timer fire without effect. Closing the timer cancels both.
 */
function repeatedTimer({ setTimeout, clearTimeout }: Platform, onFire: () => void): Timer {
  let timer: ReturnType<Platform['setTimeout']> | undefined
  let timerMs = 0
  let restMs = 0
  let isSet = false

  const fired = (): void => {
    if (!isSet) return
    isSet = false
    if (restMs > 0) set(restMs)
    else onFire()
  }
  const set = (ms: number): void => {
    isSet = true
    const next = Math.min(ms, LONGEST_TIMER_MS)
    restMs = ms - next
    if (timer !== undefined && next === timerMs) {
      timer.refresh()
      return
    }
    if (timer !== undefined) clearTimeout(timer)
    timer = setTimeout(fired, next)
    timerMs = next
  }
  return {
    set,
    clear() {
      isSet = false
    },
    close() {
      isSet = false
      if (timer !== undefined) clearTimeout(timer)
      timer = undefined
    },
  }
}
