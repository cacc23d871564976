// Randomness from a seed: the same again for the same seed, and moments within their span.
import { expect, it } from 'vitest'
import { momentsIn, pick, randomFrom } from './random.ts'

it('is the same for the same seed, and another for another', () => {
  const three = (seed: number) => Array.from({ length: 3 }, randomFrom(seed))
  expect(three(1)).toEqual(three(1))
  expect(three(1)).not.toEqual(three(2))
})

it('gives moments in order, within the span but for its first and last tenth', () => {
  const moments = momentsIn(1_000, 200, randomFrom(3))
  expect(moments).toEqual(moments.toSorted((a, b) => a - b))
  expect(Math.min(...moments)).toBeGreaterThanOrEqual(100)
  expect(Math.max(...moments)).toBeLessThanOrEqual(900)
})

it('picks each of what there is, and refuses to pick from nothing', () => {
  const random = randomFrom(4)
  expect(new Set(Array.from({ length: 50 }, () => pick(['a', 'b', 'c'], random))).size).toBe(3)
  expect(() => pick([], random)).toThrow(RangeError)
})
