import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffMs } from './backoff.ts'

const policy = { attempts: 10, baseMs: 1_000, maxMs: 60_000, jitter: 0.2 }

it('doubles with each attempt up to the longest wait', () => {
  const plain = [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => backoffMs(attempt, policy, () => 0.5))
  expect(plain).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})

it('spreads by the jitter, up and down', () => {
  expect(backoffMs(1, policy, () => 0)).toBe(800)
  expect(backoffMs(1, policy, () => 0.999_999)).toBe(1_200)
})

it('stays within the jitter of min(base × 2^(attempt-1), max), for every policy', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 0, max: 1e9 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 0.999_999, noNaN: true }),
      (attempt, baseMs, extra, jitter, chance) => {
        const maxMs = baseMs + extra
        const plain = Math.min(baseMs * 2 ** (attempt - 1), maxMs)
        const delay = backoffMs(attempt, { attempts: 5, baseMs, maxMs, jitter }, () => chance)
        expect(delay).toBeGreaterThanOrEqual(Math.floor(plain * (1 - jitter)))
        expect(delay).toBeLessThanOrEqual(Math.ceil(plain * (1 + jitter)))
      },
    ),
  )
})
