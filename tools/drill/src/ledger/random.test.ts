// Tests that the same seed yields the same random numbers, and that times are within their span.
import { expect, it } from 'vitest'
import { momentsIn, pick, randomFrom, shuffled } from './random.ts'

it('randomFrom repeats its numbers for the same seed', () => {
  const three = (seed: number) => Array.from({ length: 3 }, randomFrom(seed))
  expect(three(1)).toEqual(three(1))
  expect(three(1)).not.toEqual(three(2))
})

it('momentsIn returns times in order, outside the first and last tenth of the span', () => {
  const moments = momentsIn(1_000, 200, randomFrom(3))
  expect(moments).toEqual(moments.toSorted((a, b) => a - b))
  expect(Math.min(...moments)).toBeGreaterThanOrEqual(100)
  expect(Math.max(...moments)).toBeLessThanOrEqual(900)
})

it('pick chooses among all elements, and rejects an empty list', () => {
  const random = randomFrom(4)
  expect(new Set(Array.from({ length: 50 }, () => pick(['a', 'b', 'c'], random))).size).toBe(3)
  expect(() => pick([], random)).toThrow(RangeError)
})

it('shuffled returns all elements in an order that depends on the seed', () => {
  const list = Array.from({ length: 20 }, (_, n) => n)
  const [one, two] = [shuffled(list, randomFrom(5)), shuffled(list, randomFrom(6))]
  expect(one).not.toEqual(two)
  for (const each of [one, two]) expect(each.toSorted((a, b) => a - b)).toEqual(list)
})
