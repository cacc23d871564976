// Tests in which order rounds measure their sides, and what is compared.
import { expect, it } from 'vitest'
import { compareRounds, describeCostRatios, describeRatios, measureRounds } from './controlled-pairs.ts'

it('each round measures theirs, ours and theirs again, and the control compares theirs with itself', async () => {
  const order: string[] = []
  const theirs = [10, 11, 22, 20]
  const ours = [5, 30]
  const take = (side: string, values: number[]) => async () => {
    order.push(side)
    return values.shift() ?? Number.NaN
  }
  const rounds = await measureRounds(2, take('ours', ours), take('theirs', theirs))
  expect(order).toEqual(['theirs', 'ours', 'theirs', 'theirs', 'ours', 'theirs'])
  // In the second round, the second measurement of theirs is the one that is compared.
  const compared = compareRounds(rounds, (value) => value)
  expect(compared).toEqual({
    theirs: 15,
    ours: 17.5,
    ratio: { median: 1, least: 0.5, most: 1.5 },
    control: { median: 1.1, least: 1.1, most: 1.1 },
    least: { theirs: 10, ours: 5, again: 11 },
  })
  expect(describeRatios(compared)).toBe('ratio 1.000 (0.500 to 1.500)   control 1.100 (1.100 to 1.100)')
  expect(describeCostRatios(compared)).toBe(`${describeRatios(compared)}   least 0.500, control 1.100`)
})
