// Tests the trend of the rows of the benchmark `sustain`.
import { expect, it } from 'vitest'
import { type SustainRow, trendsOf } from './rows.ts'

const row: SustainRow = {
  ...{ seconds: 60, enqueuedPerSecond: 2_000, endedPerSecond: 2_000, enqueueP99Ms: 4, waitP99Ms: 5, endP99Ms: 6 },
  ...{ redisCores: 0.2, producerCores: 0.1, workerCores: 0.4, redisMiB: 500, waiting: 500_000, failedCalls: 0 },
}

it('the trend leaves out the first two minutes, and is a percentage of the mean', () => {
  const rows = [100, 300, 495, 500, 505].map((redisMiB) => ({ ...row, redisMiB }))
  expect(trendsOf(rows, 60)).toMatchObject({ redisMiB: 1, waiting: 0, enqueueP99Ms: 0 })
})

it('there is no trend of fewer than three rows', () => {
  expect(trendsOf([row, row], 60)).toEqual({})
})
