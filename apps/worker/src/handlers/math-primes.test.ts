// Tests the handler of math.primes.
import { mathPrimes } from '@bullpen/tasks'
import { runTask } from '@bullpen/testkit'
import { expect, test } from 'vitest'
import primes from './math-primes.ts'
import { ONCE } from './output-of.fixture.ts'

test.each([
  [0, 0],
  [2, 0],
  [3, 1],
  [4, 2],
  [25, 9],
  [26, 9],
  [1_000, 168],
  // Around the end of the first segment, whose last prime is 262,139, and the first prime of the second one, 262,147.
  [262_144, 23_000],
  [262_147, 23_000],
  [262_148, 23_001],
  [1_000_000, 78_498],
])('below %i there are %i', async (below, count) => {
  expect(await runTask(mathPrimes, primes, { below })).toMatchObject({ status: 'completed', output: { primes: count } })
})

test('a cancelled count ends early', async () => {
  const run = await runTask(mathPrimes, primes, { below: 1_000_000_000 }, { ...ONCE, cancelAt: '1ms' })
  expect(run).toMatchObject({ status: 'cancelled', late: [] })
})
