// Which measurement of another clock is trusted, and when the skew is logged.
import { describe, expect, it } from 'vitest'
import { better, crossing, type Estimate } from './clock-estimate.ts'

const known: Estimate = { offsetMs: 1_000, errorMs: 1, at: 0 }

describe('of two measurements', () => {
  it('the first is better than none', () => {
    expect(better(undefined, known)).toBe(known)
  })

  it.each([
    ['the surer one', { offsetMs: 1_000.5, errorMs: 0.5, at: 10 }],
    ['a new one that is as sure as what is left of the old one', { offsetMs: 1_001, errorMs: 2.9, at: 10_000 }],
    ['a new one that both can not be true with', { offsetMs: 5_000, errorMs: 800, at: 10 }],
  ])('%s is kept', (_, sample) => {
    expect(better(known, sample)).toBe(sample)
  })

  it('a less certain new one that agrees within its error is dropped', () => {
    expect(better(known, { offsetMs: 1_700, errorMs: 800, at: 10 })).toBe(known)
  })
})

describe('a skew', () => {
  it.each([
    [false, 501, 0, 'far'],
    [false, -501, 0, 'far'],
    [false, 600, 150, undefined],
    [true, 3_600_000, 0, undefined],
    [true, 300, 0, undefined],
    [true, 240, 5, 'near'],
    [false, 240, 5, undefined],
  ] as const)(
    'reported as far: %s, of %i ms with an error of %i ms is reported as %s',
    (wasFar, skewMs, errorMs, reported) => {
      expect(crossing(wasFar, skewMs, errorMs)).toBe(reported)
    },
  )
})
