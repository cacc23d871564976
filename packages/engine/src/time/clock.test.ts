import { describe, expect, it, vi } from 'vitest'
import { clockFrom, type Platform } from './clock.ts'

/** Node's timers as a list that a test moves through. */
function platform() {
  let time = 1_000
  let wall = 5_000
  const timers: { at: number; ms: number; callback: () => void; refresh(): unknown }[] = []
  const made = vi.fn()
  const given: Platform = {
    now: () => wall,
    monotonic: () => time,
    setTimeout(callback, ms) {
      made(ms)
      const timer = { at: time + ms, ms, callback, refresh }
      function refresh() {
        timer.at = time + ms
        timers.push(timer)
      }
      timers.push(timer)
      return timer
    },
    clearTimeout: (timer) => void timers.splice(timers.indexOf(timer as (typeof timers)[number]), 1),
  }
  return {
    given,
    made,
    pending: () => new Set(timers).size,
    setWall: (to: number) => (wall = to),
    advance(ms: number) {
      time += ms
      wall += ms
      for (const timer of new Set(timers)) {
        if (timer.at > time) continue
        while (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1)
        timer.callback()
      }
    },
  }
}

describe('a timer', () => {
  it('rings once each time that it is set, and makes one timer for all times that are alike', () => {
    const { given, made, advance } = platform()
    const ring = vi.fn()
    const timer = clockFrom(given).timer(ring)
    for (let i = 1; i <= 3; i++) {
      timer.set(100)
      advance(100)
      expect(ring).toHaveBeenCalledTimes(i)
    }
    expect(made).toHaveBeenCalledTimes(1)
  })

  it('does not ring when it is cleared, or for what was set before', () => {
    const { given, advance } = platform()
    const ring = vi.fn()
    const timer = clockFrom(given).timer(ring)
    timer.set(100)
    timer.clear()
    advance(100)
    timer.set(100)
    timer.set(300)
    advance(200)
    expect(ring).not.toHaveBeenCalled()
    advance(100)
    expect(ring).toHaveBeenCalledTimes(1)
  })

  it('leaves nothing behind when it is closed', () => {
    const { given, pending } = platform()
    const timer = clockFrom(given).timer(() => {})
    timer.set(100)
    timer.clear()
    timer.close()
    expect(pending()).toBe(0)
  })

  it('counts times that are longer than Node’s timers can', () => {
    const { given, advance } = platform()
    const ring = vi.fn()
    clockFrom(given)
      .timer(ring)
      .set(2 ** 31 + 500)
    advance(2 ** 31 - 1)
    expect(ring).not.toHaveBeenCalled()
    advance(501)
    expect(ring).toHaveBeenCalledTimes(1)
  })
})

it('tells the wall clock’s time of a monotonic moment, and follows it within a second when it is set', () => {
  const { given, advance, setWall } = platform()
  const clock = clockFrom(given)
  expect(clock.at(clock.monotonic())).toBe(5_000)
  setWall(90_000)
  advance(1_001)
  expect(clock.at(clock.monotonic())).toBe(91_001)
})
