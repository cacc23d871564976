// Tests percentiles.
import { describe, expect, it } from 'vitest'
import { p99, rank } from './ranks.ts'

it('rank returns the smallest value that a share of the values does not exceed', () => {
  expect(rank([3, 1, 2, 4], 0.5)).toBe(2)
  expect(rank([], 0.5)).toBeUndefined()
})

describe('p99', () => {
  it.each([
    [[], undefined],
    [[7], 7],
    [Array.from({ length: 100 }, (_, i) => 100 - i), 99],
    [Array.from({ length: 101 }, (_, i) => i + 1), 100],
    [Array.from({ length: 1_000 }, (_, i) => i + 1), 990],
  ])('of %j is %s', (values, expected) => {
    expect(p99(values)).toBe(expected)
  })
})
