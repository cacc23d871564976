// Tests which names the senders of requests can give.
import { expect, it } from 'vitest'
import { requesterName } from './requester.ts'

it.each(['ann', 'Zoë', 'ci: deploy #7', '李', 'x'.repeat(100)])('a request can come from %j', (name) => {
  expect(requesterName.parse(name)).toBe(name)
})

it.each([
  '',
  'x'.repeat(101),
  'ann\nroot',
  'ann\r',
  '\u001b[31mann',
  'a\tb',
  '\u0085',
  'Ann \ud83d',
  'a\u202eb',
  'a\u2028b',
])('a request cannot come from %j', (name) => {
  expect(requesterName.safeParse(name).success).toBe(false)
})
