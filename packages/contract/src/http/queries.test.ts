// Tests query parameters: waiting and pagination.
import { describe, expect, test } from 'vitest'
import { listQuerySchema, MAX_WAIT_S, PAGINATION, waitSchema } from './queries.ts'

describe('the query of a listing', () => {
  test('has a default page size, and reads one as text', () => {
    expect(listQuerySchema.parse({ queue: 'cpu', status: 'dead' })).toEqual({
      queue: 'cpu',
      status: 'dead',
      limit: PAGINATION.default,
    })
    expect(listQuerySchema.parse({ queue: 'cpu', status: 'dead', limit: '200', cursor: 'c' })).toMatchObject({
      limit: 200,
    })
  })

  test.each([
    {},
    { queue: 'cpu' },
    { status: 'dead' },
    { queue: 'cpu', status: 'failed' },
    { queue: 'cpu', status: 'dead', cursor: 'c'.repeat(2_049) },
    { queue: 'cpu', status: 'dead', page: '2' },
  ])('%j is refused', (query) => {
    expect(listQuerySchema.safeParse(query).success).toBe(false)
  })

  test.each(['0', '201', '1.5', 'many', '', '-1', '0x10'])('limit=%s is refused with what is accepted', (limit) => {
    const { error } = listQuerySchema.safeParse({ queue: 'cpu', status: 'dead', limit })
    expect(error?.issues.map(({ message }) => message)).toEqual(['expected a whole number from 1 to 200'])
  })
})

describe('a wait', () => {
  test.each([
    ['0', 0],
    ['0.5', 0.5],
    ['30', MAX_WAIT_S],
    ['10s', 10],
    ['1.5s', 1.5],
    ['500ms', 0.5],
    ['30000ms', MAX_WAIT_S],
  ])('of %s is accepted', (text, seconds) => {
    expect(waitSchema.parse(text)).toBe(seconds)
  })

  test.each(['31', '31s', '30001ms', '-1', '5m', 's', 'Infinity', '0x10', ''])(
    'of %s is refused with what is accepted',
    (text) => {
      const { error } = waitSchema.safeParse(text)
      expect(error?.issues.map(({ message }) => message)).toEqual([
        "expected a duration such as '10s', or a number of seconds, from 0 to 30 s",
      ])
    },
  )
})
