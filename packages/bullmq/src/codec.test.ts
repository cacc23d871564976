import type { AttemptRecord } from '@bullpen/contract'
import { ATTEMPT_END_STATES, END_REASONS } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeStacks, describeEnd, encodeStack } from './codec.ts'

const ends: fc.Arbitrary<AttemptRecord> = fc.record(
  {
    fencingToken: fc.integer({ min: 1, max: 1e6 }),
    attempt: fc.integer({ min: 1, max: 1e3 }),
    counted: fc.boolean(),
    state: fc.constantFrom(...ATTEMPT_END_STATES),
    reason: fc.constantFrom(...Object.values(END_REASONS).flat()),
    code: fc.string(),
    message: fc.string({ unit: 'binary' }),
    worker: fc.string(),
    startedAt: fc.nat(),
    endedAt: fc.nat(),
  },
  { requiredKeys: ['fencingToken', 'attempt', 'counted', 'state', 'worker', 'startedAt', 'endedAt'] },
)

describe('the codec', () => {
  it('decodes every attempt record that it encoded into a stack, whatever the message', () => {
    fc.assert(
      fc.property(fc.array(ends), (given) => {
        const stored = JSON.stringify(given.map((end) => encodeStack(end, new Error(end.message))))
        expect(decodeStacks(stored)).toEqual(given)
      }),
    )
  })

  it('skips stacks that are not its own, and never throws', () => {
    expect(decodeStacks(JSON.stringify(['Error: job stalled\n    at x', 'null', 7]))).toEqual([])
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        decodeStacks(text)
      }),
    )
  })

  it('describes a record for people', () => {
    const end: AttemptRecord = {
      fencingToken: 1,
      attempt: 1,
      counted: true,
      state: 'RECOVER_ERR',
      reason: 'invalid_output',
      message: 'no',
      worker: 'p',
      startedAt: 0,
      endedAt: 0,
    }
    expect(describeEnd(end)).toBe('RECOVER_ERR (invalid_output): no')
  })
})
