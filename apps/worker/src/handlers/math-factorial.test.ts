// Tests the handler of math.factorial.
import { mathFactorial } from '@bullpen/tasks'
import { runTask } from '@bullpen/testkit'
import { expect, test } from 'vitest'
import factorial from './math-factorial.ts'

test.each([
  [0, '1'],
  [1, '1'],
  [5, '120'],
  // The first value that a double can't represent.
  [23, '25852016738884976640000'],
  [30, '265252859812191058636308480000000'],
])('%i! is %s', async (n, value) => {
  expect(await runTask(mathFactorial, factorial, { n })).toMatchObject({ status: 'completed', output: { value } })
})

test('1000! has 2568 digits', async () => {
  const { output: { value } = { value: '' } } = await runTask(mathFactorial, factorial, { n: 1000 })
  expect([value.length, value.slice(0, 10)]).toEqual([2568, '4023872600'])
})
