// Tests errors: the closed list of codes, their HTTP statuses and titles, and the failures that handlers declare.
import { describe, expect, test } from 'vitest'
import { problemSchema } from '../http/problem.ts'
import { BullpenError, ERROR_CODES, ERRORS } from './errors.ts'
import { declareFailure } from './failure.ts'
import { TaskError } from './task-error.ts'

describe('the list of error codes', () => {
  test('contains codes in snake case, and gives each the status of a failure', () => {
    for (const code of ERROR_CODES) expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
    for (const { status } of Object.values(ERRORS)) expect([4, 5]).toContain(Math.floor(status / 100))
  })

  test('separates what the caller can correct from what it can only retry', () => {
    expect(ERRORS).toMatchObject({
      redis_unavailable: { status: 503 },
      shutting_down: { status: 503 },
      invalid_input: { status: 422 },
      task_not_found: { status: 404 },
    })
  })

  test.each(ERROR_CODES)('a problem may have the code %s', (code) => {
    const problem = { type: `/problems/${code}`, title: 'T', status: ERRORS[code].status, code }
    expect(problemSchema.parse(problem)).toEqual(problem)
    expect(problemSchema.safeParse({ ...problem, code: `${code}_2` }).success).toBe(false)
  })
})

describe('a BullpenError', () => {
  test('keeps its code, field errors and cause', () => {
    const cause = new Error('why')
    const errors = [{ pointer: '/input/n', message: 'too big' }]
    expect(new BullpenError('invalid_input', 'no', { cause, errors })).toMatchObject({
      code: 'invalid_input',
      errors,
      cause,
      name: 'BullpenError',
    })
    expect(new BullpenError('invalid_input', 'no')).toMatchObject({ errors: [], message: 'no' })
    expect(new BullpenError('invalid_input', 'no')).not.toHaveProperty('cause')
  })

  test('has a code from the closed list', () => {
    // @ts-expect-error: not in the list.
    expect(new BullpenError('oops', 'no').code).toBe('oops')
  })
})

describe('a TaskError', () => {
  test('is retryable by default, and may set the delay of the next attempt', () => {
    expect(new TaskError('card_declined', 'no')).toMatchObject({ retryable: true, retryAfterMs: undefined })
    expect(new TaskError('busy', 'no', { retryAfter: '2s' })).toMatchObject({ retryable: true, retryAfterMs: 2_000 })
    expect(new TaskError('card_declined', 'no', { retryable: false })).toMatchObject({ retryable: false })
    expect(new TaskError('busy', 'no', { cause: 'why' }).cause).toBe('why')
  })

  test.each([
    ['smtp_421', 'smtp_421'],
    ['Card declined', 'card_declined'],
    ['card-declined!', 'card_declined'],
    ['404', 'error_404'],
    ['', 'error'],
    ['…', 'error'],
    ['c'.repeat(65), 'c'.repeat(64)],
  ])('with the code %j has the code %j: the constructor never throws', (given, code) => {
    expect(new TaskError(given, 'no').code).toBe(code)
  })

  test('ignores a code that is not a text, and a delay that is invalid or has no effect', () => {
    expect(new TaskError(undefined as never, 'no').code).toBe('undefined')
    expect(new TaskError('busy', 'no', { retryAfter: '0s' }).retryAfterMs).toBeUndefined()
    expect(new TaskError('busy', 'no', { retryAfter: '2' as '2s' }).retryAfterMs).toBeUndefined()
    expect(new TaskError('declined', 'no', { retryable: false, retryAfter: '2s' }).retryAfterMs).toBeUndefined()
  })
})

test("a classifier's failure takes the same code and delay as a TaskError", () => {
  expect(declareFailure({ code: 'Bank away', retryable: true, retryAfter: '5s' })).toEqual({
    code: 'bank_away',
    retryable: true,
    retryAfterMs: 5_000,
  })
  expect(declareFailure({ code: 'closed', retryable: false, retryAfter: '5s' }).retryAfterMs).toBeUndefined()
})
