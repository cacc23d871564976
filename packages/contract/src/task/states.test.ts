// Tests the words: states, statuses, reasons, and the records that hold them.
import { describe, expect, test } from 'vitest'
import { attemptRecordSchema } from './attempt-record.ts'
import { ENVELOPE_VERSION, envelopeSchema } from './envelope.ts'
import {
  ATTEMPT_END_STATES,
  ATTEMPT_STATES,
  END_REASONS,
  FINAL_STATUSES,
  isFinal,
  OPEN_ATTEMPT_STATES,
  TASK_STATUSES,
} from './states.ts'

test('every status is either final or followed by another', () => {
  expect(TASK_STATUSES.filter(isFinal)).toEqual([...FINAL_STATUSES])
  expect(TASK_STATUSES.filter((status) => !isFinal(status))).toEqual(['scheduled', 'waiting', 'active', 'retrying'])
})

test("an attempt's states are open or an end, each once", () => {
  expect(new Set(ATTEMPT_STATES).size).toBe(OPEN_ATTEMPT_STATES.length + ATTEMPT_END_STATES.length)
})

test('a reason belongs to one state; success and declared failures have none', () => {
  const reasons = Object.values(END_REASONS).flat()
  expect(new Set(reasons).size).toBe(reasons.length)
  expect(ATTEMPT_END_STATES.filter((state) => !(state in END_REASONS))).toEqual(['DONE_SUCCESS', 'DONE_ERROR'])
})

describe('the end of an attempt', () => {
  const end = { fencingToken: 1, attempt: 1, state: 'DONE_SUCCESS', worker: 'host:1', startedAt: 0, endedAt: 1 }

  test.each(ATTEMPT_END_STATES)('is stored as %s', (state) => {
    expect(attemptRecordSchema.parse({ ...end, state })).toEqual({ ...end, state })
  })

  test.each([
    { state: 'IN_PROCESS' },
    { reason: 'tired' },
    { fencingToken: -1 },
    { attempt: 0 },
    { startedAt: 0.5 },
    { worker: undefined },
  ])('is not stored with %j', (wrong) => {
    expect(attemptRecordSchema.safeParse({ ...end, ...wrong }).success).toBe(false)
  })
})

describe('the envelope', () => {
  const envelope = { v: ENVELOPE_VERSION, version: 1, input: { n: 1 } }

  test('holds what a caller sent, whatever it is', () => {
    for (const input of [null, 0, '', [], { n: 1 }]) {
      expect(envelopeSchema.parse({ ...envelope, input })).toEqual({ ...envelope, input })
    }
    const whole = { ...envelope, meta: { a: 'b' }, correlationId: 'c', timeoutMs: 'none' }
    expect(envelopeSchema.parse(whole)).toEqual(whole)
  })

  test.each([{ v: ENVELOPE_VERSION + 1 }, { v: undefined }, { version: 0 }, { timeoutMs: 0 }, { meta: { a: 1 } }])(
    'with %j can not be read',
    (wrong) => {
      expect(envelopeSchema.safeParse({ ...envelope, ...wrong }).success).toBe(false)
    },
  )
})
