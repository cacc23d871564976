// Tests which policies for a full queue are accepted, in a queue's definition and in a request.
import { describe, expect, test } from 'vitest'
import { defineQueue } from '../queue.ts'
import { whenFullSchema } from './when-full.ts'

describe('the policy for a full queue', () => {
  test.each(['reject', 'drop', { block: '10s' }, { block: '30s' }, { block: '1ms' }] as const)(
    '%j is accepted in a definition and in a request',
    (whenFull) => {
      expect(defineQueue({ name: 'mail', whenFull }).whenFull).toEqual(whenFull)
      expect(whenFullSchema.parse(whenFull)).toEqual(whenFull)
    },
  )

  test("is 'reject' by default", () => {
    expect(defineQueue({ name: 'mail' }).whenFull).toBe('reject')
  })

  test.each([
    ['wait'],
    [{ block: '31s' }],
    [{ block: 10 }],
    [{ block: '0s' }],
    [{}],
    [{ block: '5s', orElse: 'drop' }],
    [7],
  ])('%j is rejected with what is accepted', (whenFull) => {
    expect(whenFullSchema.safeParse(whenFull).success).toBe(false)
    // Plain JavaScript may pass what the types refuse.
    expect(() => defineQueue({ name: 'mail', whenFull: whenFull as never })).toThrow(
      expect.objectContaining({
        code: 'invalid_definition',
        message: expect.stringContaining("expected 'reject', 'drop', or { block: DURATION } with at most '30s'"),
      }),
    )
  })
})
