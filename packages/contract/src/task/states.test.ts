import { describe, expect, it } from 'vitest'
import { attemptRecordSchema } from './attempt-record.ts'
import { ENVELOPE_VERSION, envelopeSchema } from './envelope.ts'
import {
  ATTEMPT_END_STATES,
  ATTEMPT_STATE_LABELS,
  ATTEMPT_STATES,
  END_REASONS,
  FINAL_STATUSES,
  isFinal,
  OPEN_ATTEMPT_STATES,
  POOL_STATE_LABELS,
  POOL_STATES,
  SLOT_STATE_LABELS,
  SLOT_STATES,
  TASK_STATUSES,
} from './states.ts'

describe('task statuses', () => {
  it('are either final or followed by another', () => {
    expect(TASK_STATUSES.filter(isFinal)).toEqual([...FINAL_STATUSES])
    expect(TASK_STATUSES.filter((status) => !isFinal(status))).toEqual(['scheduled', 'waiting', 'active', 'retrying'])
  })
})

describe('attempt states', () => {
  it('are open or final, and never both', () => {
    expect(new Set(ATTEMPT_STATES).size).toBe(OPEN_ATTEMPT_STATES.length + ATTEMPT_END_STATES.length)
  })

  it('share no reason; success and declared failures have none', () => {
    const reasons = Object.values(END_REASONS).flat()
    expect(new Set(reasons).size).toBe(reasons.length)
    expect(ATTEMPT_END_STATES.filter((state) => !(state in END_REASONS))).toEqual(['DONE_SUCCESS', 'DONE_ERROR'])
  })
})

describe.each([
  { machine: 'an attempt', states: ATTEMPT_STATES, labels: ATTEMPT_STATE_LABELS },
  { machine: 'a slot', states: SLOT_STATES, labels: SLOT_STATE_LABELS },
  { machine: 'a pool', states: POOL_STATES, labels: POOL_STATE_LABELS },
])('the labels of $machine', ({ states, labels }) => {
  it('name every state in plain words, each differently', () => {
    expect(Object.keys(labels).sort()).toEqual([...states].sort())
    const words = Object.values(labels)
    expect(new Set(words).size).toBe(words.length)
    for (const label of words) expect(label).toMatch(/^[a-z ]+$/)
  })
})

describe('an attempt record', () => {
  const record = {
    fencingToken: 1,
    attempt: 1,
    counted: true,
    state: 'DONE_SUCCESS',
    worker: 'host:1',
    startedAt: 0,
    endedAt: 1,
  }

  it.each(ATTEMPT_END_STATES)('is stored as %s', (state) => {
    expect(attemptRecordSchema.parse({ ...record, state })).toEqual({ ...record, state })
  })

  it('names who cancelled the task', () => {
    const cancelled = { ...record, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', by: 'alice' }
    expect(attemptRecordSchema.parse(cancelled)).toEqual(cancelled)
  })

  it.each([
    { state: 'IN_PROCESS' },
    { reason: 'tired' },
    { fencingToken: -1 },
    { attempt: 0 },
    { counted: undefined },
    { startedAt: 0.5 },
    { worker: undefined },
  ])('is refused with %j', (wrong) => {
    expect(attemptRecordSchema.safeParse(record).success).toBe(true)
    expect(attemptRecordSchema.safeParse({ ...record, ...wrong }).success).toBe(false)
  })
})

describe('the envelope', () => {
  const envelope = { v: ENVELOPE_VERSION, version: 1, input: { n: 1 } }

  it('holds any input that a caller sent', () => {
    for (const input of [null, 0, '', [], { n: 1 }]) {
      expect(envelopeSchema.parse({ ...envelope, input })).toEqual({ ...envelope, input })
    }
    const whole = { ...envelope, meta: { a: 'b' }, correlationId: 'c', timeoutMs: 'none' }
    expect(envelopeSchema.parse(whole)).toEqual(whole)
  })

  it.each([{ v: ENVELOPE_VERSION + 1 }, { v: undefined }, { version: 0 }, { timeoutMs: 0 }, { meta: { a: 1 } }])(
    'is refused with %j',
    (wrong) => {
      expect(envelopeSchema.safeParse({ ...envelope, ...wrong }).success).toBe(false)
    },
  )
})
