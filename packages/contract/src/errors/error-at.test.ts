// An error about a part of a request's body has the places that its values have in the whole body.
import { expect, test } from 'vitest'
import { errorAt } from './error-at.ts'
import { BullpenError } from './errors.ts'

const errors = [
  { pointer: '/input/to', message: 'expected an address' },
  { pointer: '/input/name', message: 'expected text' },
]

test.each([
  ['/input/to: expected an address', '/tasks/3/input/to: expected an address'],
  ['/input/to: expected an address (and 1 more)', '/tasks/3/input/to: expected an address (and 1 more)'],
  [
    'the input is wrong: /input/to: expected an address; /input/name: expected text',
    'the input is wrong: /tasks/3/input/to: expected an address; /tasks/3/input/name: expected text',
  ],
  ['the input is wrong', '/tasks/3: the input is wrong'],
])('the message %j becomes %j', (message, expected) => {
  const moved = errorAt(new BullpenError('invalid_input', message, { errors }), '/tasks/3')
  expect(moved).toMatchObject({ code: 'invalid_input', message: expected })
  expect(moved.errors.map((each) => 'pointer' in each && each.pointer)).toEqual([
    '/tasks/3/input/to',
    '/tasks/3/input/name',
  ])
})

test('an error that does not list invalid values concerns the part as a whole', () => {
  const cause = new Error('why')
  const moved = errorAt(new BullpenError('unknown_task', 'no task has this name', { cause, taskId: 'a' }), '/tasks/3')
  expect(moved).toMatchObject({
    ...{ message: '/tasks/3: no task has this name', cause, taskId: 'a' },
    errors: [{ pointer: '/tasks/3', message: 'no task has this name' }],
  })
})
