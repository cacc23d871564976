// Tests the figures of Redis's memory with handwritten samples.
import { expect, it } from 'vitest'
import { type MemorySample, memoryFigures } from './memory-samples.ts'

const KIB = 1_024
const sample = (results: number, kib: number, waiting = 0): MemorySample => ({
  ...{ bytes: kib * KIB, usedBytes: 2 * kib * KIB, waiting, results },
})
const steady = [0, 10, 20, 30, 40, 50, 60].map((results) => sample(results, 5))

it('memory that stays the same has not grown', () => {
  expect(memoryFigures([steady, steady], 60)).toEqual({
    memoryKiB: Array(14).fill(5),
    ...{ memoryMinKiB: 5, memoryMedianKiB: 5, memoryMaxKiB: 5, memoryGrowthKiB: 0, usedMemoryMaxKiB: 10 },
    waitingMost: 0,
  })
})

it('the growth of a run is that of the peaks of the first and the last third of its results', () => {
  const grows = [sample(0, 1), sample(19, 3), sample(20, 50, 7), sample(40, 4), sample(59, 9), sample(60, 2)]
  expect(memoryFigures([steady, grows], 60)).toMatchObject({ memoryGrowthKiB: 6, memoryMaxKiB: 50, waitingMost: 7 })
})

it('the growth of the first run does not count', () => {
  expect(memoryFigures([[sample(0, 1), sample(60, 9)], steady], 60).memoryGrowthKiB).toBe(0)
})

it('the growth is not measured without samples of both thirds', () => {
  expect(memoryFigures([steady, [sample(0, 1)]], 60).memoryGrowthKiB).toBeNaN()
})

it('at most 24 peaks show the memory over time', () => {
  const many = Array.from({ length: 240 }, (_, n) => sample(n, n))
  const { memoryKiB } = memoryFigures([many], 240)
  expect(memoryKiB).toEqual(Array.from({ length: 24 }, (_, n) => 10 * n + 9))
})
