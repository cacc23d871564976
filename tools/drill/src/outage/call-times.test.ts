// Tests the figure about the times of calls.
import { expect, it } from 'vitest'
import { mostWithin } from './call-times.ts'

it('the most calls are counted in any window, whenever it begins', () => {
  expect(mostWithin([0, 900, 1_000, 1_100, 1_899], 1_000)).toBe(4)
  expect(mostWithin([0, 1_000, 2_000], 1_000)).toBe(1)
  expect(mostWithin([], 1_000)).toBe(0)
})
