// Tests the delays before retries, for every type of backoff.
import type { Backoff } from '@bullpen/contract'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { backoffMs } from './backoff.ts'

const jitter = 0.2
const exponential: Backoff = { type: 'exponential', initialMs: 1_000, maxMs: 60_000, factor: 2, jitter }

it.each<[Backoff, number[]]>([
  [exponential, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]],
  [{ ...exponential, factor: 3 }, [1_000, 3_000, 9_000, 27_000, 60_000]],
  [{ type: 'linear', initialMs: 1_000, maxMs: 3_000, jitter }, [1_000, 2_000, 3_000, 3_000]],
  [{ type: 'fixed', initialMs: 700, jitter }, [700, 700, 700]],
  [{ type: 'list', delaysMs: [5, 60, 600], jitter }, [5, 60, 600, 600]],
])('the delays of %j are %j without jitter', (backoff, delays) => {
  expect(delays.map((_, i) => backoffMs(i + 1, backoff, () => 0.5))).toEqual(delays)
})

it('the jitter spreads a delay up and down', () => {
  expect(backoffMs(1, exponential, () => 0)).toBe(800)
  expect(backoffMs(1, exponential, () => 0.999_999)).toBe(1_200)
})

it('full jitter gives any delay up to the one without jitter, and at least 1 ms', () => {
  const full: Backoff = { ...exponential, jitter: 'full' }
  expect([0, 0.25, 0.999_999].map((chance) => backoffMs(2, full, () => chance))).toEqual([1, 500, 2_000])
  expect(backoffMs(9, full, () => 0.999_999)).toBe(60_000)
})

it('an exponential delay stays within the jitter of min(initial × factor^(attempt-1), max), for every policy', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 0, max: 1e9 }),
      fc.double({ min: 1, max: 100, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 0.999_999, noNaN: true }),
      (attempt, initialMs, extra, factor, jitter, chance) => {
        const maxMs = initialMs + extra
        const plain = Math.min(initialMs * factor ** (attempt - 1), maxMs)
        const delay = backoffMs(attempt, { type: 'exponential', initialMs, maxMs, factor, jitter }, () => chance)
        expect(delay).toBeGreaterThanOrEqual(Math.max(1, Math.floor(plain * (1 - jitter))))
        expect(delay).toBeLessThanOrEqual(Math.ceil(plain * (1 + jitter)))
      },
    ),
  )
})
