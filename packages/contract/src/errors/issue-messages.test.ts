// Tests the messages for values that a schema rejects.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { describeIssue } from './issue-messages.ts'

test.each([
  ['a number above its maximum', z.int().max(5), 7, 'expected at most 5, got 7'],
  ['a number below its minimum', z.number().min(0), -1, 'expected at least 0, got -1'],
  ['a number at an exclusive minimum', z.number().positive(), 0, 'expected more than 0, got 0'],
  ['a number at an exclusive maximum', z.number().lt(1), 1, 'expected less than 1, got 1'],
  ['an unsafe integer', z.int(), 2 ** 60, `expected at most ${Number.MAX_SAFE_INTEGER}, got ${2 ** 60}`],
  ['an empty text', z.string().min(1), '', 'expected at least 1 character'],
  ['a text that is too long', z.string().max(3), 'four', 'expected at most 3 characters'],
  ['a text of the wrong length', z.string().length(2), 'four', 'expected exactly 2 characters'],
  ['a list that is too long', z.array(z.int()).max(1), [1, 2], 'expected at most 1 item'],
  ['a value of the wrong type', z.int(), 'x', 'expected a number, got a string'],
  ['a bound with a message of its own', z.int().max(5, 'five is enough'), 7, 'five is enough'],
])('%s is rejected with what is accepted', (_, schema, value, message) => {
  const { error } = z.object({ field: schema }).safeParse({ field: value }, { error: describeIssue })
  expect(error?.issues.map((issue) => issue.message)).toEqual([message])
})
