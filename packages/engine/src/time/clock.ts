// The engine's clock, made from a platform's own functions, which are handed in.

import type { Clock, Timer } from '../ports/clock.ts'
/** What Node gives: `{ now: Date.now, monotonic: () => performance.now(), setTimeout, clearTimeout }`. */
export interface Platform {
  readonly now: () => number
  readonly monotonic: () => number
  readonly setTimeout: (callback: () => void, ms: number) => { refresh(): unknown }
  readonly clearTimeout: (timer: { refresh(): unknown }) => void
}

/** The longest time that Node's timers count; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** How long, in ms, the two clocks are taken to run alike: the wall clock may be set meanwhile. */
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
    timer: (ring) => repeatedTimer(platform, ring),
  }
}

/**
 * Set to the same time again and again, as it is for attempts with one timeout, it only refreshes what is there. A cleared
 * one runs out in silence, which costs less than to end it: closing does that.
 */
function repeatedTimer({ setTimeout, clearTimeout }: Platform, ring: () => void): Timer {
  let timer: ReturnType<Platform['setTimeout']> | undefined
  let timerMs = 0
  let restMs = 0
  let isSet = false

  const fired = (): void => {
    if (!isSet) return
    isSet = false
    if (restMs > 0) set(restMs)
    else ring()
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
