// Tests that each deviation of a retry by filter shows in its figure.
import { expect, it } from 'vitest'
import { type RetryLedger, retryFigures } from './retry-figures.ts'

const BY = 'ann (key 1)'
const retried = { status: 'completed', attemptsMade: 1, retries: [{ by: BY }] }
const dead = { status: 'dead', attemptsMade: 1 }
const audited = { action: 'retry', by: BY, matching: 2, deadTaskRequest: 'r' }

const RIGHT: RetryLedger = {
  selected: ['a', 'b'],
  others: ['c'],
  ends: new Map([
    ['a', retried],
    ['b', retried],
    ['c', dead],
  ]),
  request: { id: 'r', by: BY, changed: 2 },
  audit: [{ ...audited, deadTaskRequest: 'another' }, audited],
  expected: new Map([['gone', 1]]),
  counted: new Map([['gone', 1]]),
}
const NONE = { historiesWrong: 0, othersChanged: 0, auditOff: 0 }
const ends = (id: string, end: object) => ({ ends: new Map([...RIGHT.ends, [id, { ...RIGHT.ends.get(id), ...end }]]) })

it.each([
  ['nothing deviates', {}, {}],
  ['a selected task was retried twice', ends('a', { retries: [{ by: BY }, { by: BY }] }), { historiesWrong: 1 }],
  ['a selected task was not retried', ends('a', { retries: [] }), { historiesWrong: 1 }],
  ['a history names somebody else', ends('b', { retries: [{ by: 'bob' }] }), { historiesWrong: 1 }],
  ['another task was retried', ends('c', { retries: [{ by: BY }] }), { othersChanged: 1 }],
  ['another task is no longer dead', ends('c', { status: 'completed' }), { othersChanged: 1 }],
  ['a kind of error is counted too often', { counted: new Map([['gone', 3]]) }, { othersChanged: 2 }],
  ['a selected kind is still counted', { counted: new Map([...RIGHT.counted, ['busy', 1]]) }, { othersChanged: 1 }],
  ['the audit line is missing', { audit: [] }, { auditOff: 2 }],
  ['the audit line names somebody else', { audit: [{ ...audited, by: 'bob' }] }, { auditOff: 2 }],
  ['the audit line counts another number', { audit: [{ ...audited, matching: 5 }] }, { auditOff: 3 }],
  ['the progress is incomplete', { request: { ...RIGHT.request, changed: 1 } }, { auditOff: 1 }],
])('if %s, the figures say so', (_, change, expected) => {
  expect(retryFigures({ ...RIGHT, ...(change as Partial<RetryLedger>) })).toEqual({ ...NONE, ...expected })
})
