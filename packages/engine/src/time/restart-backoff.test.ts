import { describe, expect, it } from 'vitest'
import { createRestartBackoff, restartDelay } from './restart-backoff.ts'

describe('the delay before a restart', () => {
  it('doubles with each failure in a row, from half a second to 30 s', () => {
    expect([0, 1, 2, 5, 6, 7, 1_000].map((failures) => restartDelay(failures))).toEqual([
      500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000,
    ])
  })

  it('stays within the given limits', () => {
    expect([0, 1, 2, 3].map((failures) => restartDelay(failures, { firstMs: 10, lastMs: 25 }))).toEqual([
      10, 20, 25, 25,
    ])
  })
})

describe('a restart backoff', () => {
  it('grows while runs are short, and starts over after one that outlasted the longest delay', () => {
    const backoff = createRestartBackoff({ firstMs: 100, lastMs: 1_000 })
    expect(backoff.next(0)).toBe(100)
    expect(backoff.next(1_000)).toBe(200)
    expect(backoff.next(1_001)).toBe(100)
    expect(backoff.next(0)).toBe(200)
  })

  it('starts over when it is reset', () => {
    const backoff = createRestartBackoff({ firstMs: 100, lastMs: 1_000 })
    backoff.next(0)
    backoff.reset()
    expect(backoff.next(0)).toBe(100)
  })
})
