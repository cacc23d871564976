// Tests how a thrown value that is not an Error is described.
import { expect, it } from 'vitest'
import { errorOf } from './thrown.ts'

it.each([
  [() => 1, 'a function'],
  [undefined, 'undefined'],
  [null, 'null'],
  ['text', '"text"'],
  [Symbol('s'), 'Symbol(s)'],
  [{ a: [1] }, '{"a":[1]}'],
  [{ toJSON() {} }, 'object'],
  [Object.defineProperty({}, 'a', { enumerable: true, get: () => expect.fail('read') }), 'object'],
])('the error that stands for a thrown value says what was thrown (case %#)', (thrown, shown) => {
  expect(errorOf(thrown).message).toBe(`the handler threw ${shown}, which is not an Error`)
})
