// How a clock that learns from replies finds out how far Redis's clock is from the machine's.
import { expect, it, onTestFinished, vi } from 'vitest'
import { createReplyClock } from './reply-clock.ts'

/** A machine whose clocks are set by the test: the wall clock shows 1,000,000 ms more than the monotonic one. */
function machine() {
  let elapsed = 0
  const spies = [
    vi.spyOn(Date, 'now').mockImplementation(() => 1_000_000 + elapsed),
    vi.spyOn(performance, 'now').mockImplementation(() => elapsed),
  ]
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore()
  })
  return { pass: (ms: number) => (elapsed += ms) }
}

it('the machine’s clock counts until the first reply', () => {
  machine()
  expect(createReplyClock().now()).toBe(1_000_000)
})

it('the time of a reply is that of half its round trip, and goes on from there', () => {
  const { pass } = machine()
  const clock = createReplyClock()
  pass(10)
  clock.learn(5_000, 0)
  expect(clock.now()).toBe(5_005)
  pass(1_000)
  expect(clock.now()).toBe(6_005)
})

it('a reply that took longer teaches nothing, unless the clock was set', () => {
  const { pass } = machine()
  const clock = createReplyClock()
  pass(10)
  clock.learn(5_000, 0)
  pass(400)
  clock.learn(5_300, 10)
  expect(clock.now()).toBe(5_405)
  pass(400)
  clock.learn(900_000, 410)
  expect(clock.now()).toBe(900_200)
})
