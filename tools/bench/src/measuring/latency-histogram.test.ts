// Tests the percentiles of times that several processes have counted.
import { expect, it } from 'vitest'
import { createLatencyHistogram, mergeBuckets, percentileMs } from './latency-histogram.ts'

it('percentiles of merged histograms are at most 1% too high', () => {
  const [one, other] = [createLatencyHistogram(), createLatencyHistogram()]
  for (let ms = 1; ms <= 500; ms++) one.count(ms)
  for (let ms = 501; ms <= 1_000; ms++) other.count(ms)
  const merged = mergeBuckets([one.take(), other.take()])
  for (const [share, exact] of [
    [0.5, 500],
    [0.99, 990],
    [1, 1_000],
  ] as const) {
    expect(percentileMs(merged, share)).toBeGreaterThanOrEqual(exact * 0.999)
    expect(percentileMs(merged, share)).toBeLessThanOrEqual(exact * 1.011)
  }
})

it('a histogram counts only what came after the last take', () => {
  const histogram = createLatencyHistogram()
  histogram.count(5)
  histogram.take()
  expect(percentileMs(histogram.take(), 0.99)).toBeNaN()
  histogram.count(0)
  expect(percentileMs(histogram.take(), 0.5)).toBeCloseTo(0.01)
})
