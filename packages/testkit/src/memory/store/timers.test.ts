// Tests the timers of a memory store with a platform whose timers fire early.
import type { Clock } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import { Timers } from './timers.ts'

it('a call is made when its time has come, even if the timer of the platform fires before', () => {
  let now = 1_000
  let fire = (): void => {}
  const clock: Partial<Clock> = {
    now: () => now,
    after: (_ms, callback) => {
      fire = callback
      return () => {}
    },
  }
  const called: number[] = []
  new Timers(clock as Clock).after(100, () => called.push(now))
  now = 1_099
  fire()
  expect(called).toEqual([])
  now = 1_100
  fire()
  expect(called).toEqual([1_100])
})
