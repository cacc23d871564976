// Tests the figures about the times of calls.
import { expect, it } from 'vitest'
import { mostWithin, sinceFirstPause } from './call-times.ts'

it('the times after the first long pause are those of probes', () => {
  expect(sinceFirstPause([0, 10, 500, 1_500, 1_600], 1_000)).toEqual([1_500, 1_600])
  expect(sinceFirstPause([0, 10], 1_000)).toEqual([])
})

it('the most calls are counted in any window, whenever it begins', () => {
  expect(mostWithin([0, 900, 1_000, 1_100, 1_899], 1_000)).toBe(4)
  expect(mostWithin([0, 1_000, 2_000], 1_000)).toBe(1)
  expect(mostWithin([], 1_000)).toBe(0)
})
