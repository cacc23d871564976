// Tests the errors: the closed list, its HTTP statuses, and what handlers declare.
import { describe, expect, expectTypeOf, test } from 'vitest'
import { HTTP_STATUS, problemSchema } from '../http/problem.ts'
import { BullpenError, ERROR_CODES, type ErrorCode } from './errors.ts'
import { TaskError } from './task-error.ts'

describe('the list of codes', () => {
  test('has every code once, in snake case', () => {
    expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length)
    for (const code of ERROR_CODES) expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
  })

  test('has an error status for every code, and for nothing else', () => {
    expect(Object.keys(HTTP_STATUS).toSorted()).toEqual([...ERROR_CODES].toSorted())
    for (const status of Object.values(HTTP_STATUS)) expect([4, 5]).toContain(Math.floor(status / 100))
    expectTypeOf<keyof typeof HTTP_STATUS>().toEqualTypeOf<ErrorCode>()
  })

  test('tells what a caller may mend from what it can only wait for', () => {
    expect(HTTP_STATUS).toMatchObject({
      redis_unavailable: 503,
      shutting_down: 503,
      invalid_input: 422,
      task_not_found: 404,
    })
  })

  test.each(ERROR_CODES)('%s can stand in a problem', (code) => {
    const problem = { type: `/problems/${code}`, title: 'T', status: HTTP_STATUS[code], code }
    expect(problemSchema.parse(problem)).toEqual(problem)
    expect(problemSchema.safeParse({ ...problem, code: `${code}_2` }).success).toBe(false)
  })
})

describe('an error of ours', () => {
  test('keeps code, errors and cause', () => {
    const cause = new Error('why')
    const errors = [{ path: 'input.n', message: 'too big' }]
    expect(new BullpenError('invalid_input', 'no', { cause, errors })).toMatchObject({
      code: 'invalid_input',
      errors,
      cause,
      name: 'BullpenError',
    })
    expect(new BullpenError('invalid_input', 'no')).toMatchObject({ errors: [], message: 'no' })
    expect(new BullpenError('invalid_input', 'no')).not.toHaveProperty('cause')
  })

  test('has a code from the list', () => {
    // @ts-expect-error: not in the list.
    expect(new BullpenError('oops', 'no').code).toBe('oops')
  })
})

describe('a failure that a handler declares', () => {
  test('is retryable unless it says otherwise, and may say when', () => {
    expect(new TaskError('card_declined', 'no')).toMatchObject({ retryable: true, retryAfterMs: undefined })
    expect(new TaskError('busy', 'no', { retryAfter: '2s' })).toMatchObject({ retryable: true, retryAfterMs: 2_000 })
    expect(new TaskError('card_declined', 'no', { retryable: false })).toMatchObject({ retryable: false })
    expect(new TaskError('busy', 'no', { cause: 'why' }).cause).toBe('why')
  })

  test.each(['', 'Card', 'card-declined', '1card', 'card declined', 'c'.repeat(65)])('has no code like %j', (code) => {
    expect(() => new TaskError(code, 'no')).toThrow(RangeError)
  })

  test('does not say when to try again what can not be tried again', () => {
    expect(() => new TaskError('declined', 'no', { retryable: false, retryAfter: '2s' })).toThrow(RangeError)
    expect(() => new TaskError('busy', 'no', { retryAfter: '2' as '2s' })).toThrow(
      expect.objectContaining({ code: 'invalid_duration' }),
    )
  })
})
