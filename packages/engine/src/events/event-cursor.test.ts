// Tests which positions readers of events may send.
import { expect, it } from 'vitest'
import { decodeCursor, encodeCursor } from './event-cursor.ts'

it('a cursor contains the position in each queue, and may lack queues that were added later', () => {
  const positions = new Map([
    ['cpu', '1700000000000-0'],
    ['io', '1700000000001-3'],
  ])
  expect(decodeCursor(encodeCursor(positions), ['cpu', 'io', 'mail'])).toEqual(positions)
  expect(decodeCursor(encodeCursor(positions), ['io'])).toEqual(new Map([['io', '1700000000001-3']]))
})

it('the cursor of a single queue is the id of an event', () => {
  const positions = new Map([['cpu', '1700000000000-0']])
  expect(encodeCursor(positions)).toBe('1700000000000-0')
  expect(decodeCursor('1700000000000-0', ['cpu'])).toEqual(positions)
})

it.each(['1700000000000-0', 'mail:1700000000000-0', ':1700000000000-0', 'cpu:', ',', 'cpu:1700000000000-0,1-0', 'x'])(
  'the position %s in two queues is refused, because the reader would miss events',
  (cursor) => {
    expect(() => decodeCursor(cursor, ['cpu', 'io'])).toThrow(expect.objectContaining({ code: 'invalid_cursor' }))
  },
)
