// Tests that keys which could change prototypes are found wherever they are, and no other key.
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { jsonPointer } from './field-error.ts'
import { refusePrototypeKeys } from './prototype-keys.ts'

/** As JSON.parse creates it, because `__proto__` in an object literal sets the prototype. */
const POISONS = ['{"__proto__":1}', '{"__proto__":{"a":1}}', '{"constructor":{"prototype":{}}}'] as const

const errorsOf = (value: unknown, base?: readonly string[]): unknown => {
  try {
    refusePrototypeKeys(value, base)
  } catch (error) {
    return error
  }
  return undefined
}

/** Objects with many names of properties that every object inherits, none of which is harmful. */
const harmless = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, fc.jsonValue(), tie('record'), fc.array(tie('value'), { maxLength: 3 })),
  record: fc.dictionary(
    fc.constantFrom('prototype', 'toString', 'hasOwnProperty', 'valueOf', 'a/b', '~', ''),
    tie('value'),
    { maxKeys: 4 },
  ),
})).value

const hasHarmful = (value: unknown): boolean => /"__proto__":|"constructor":/.test(JSON.stringify(value))

test('a harmful key is refused with its place, at any depth', () => {
  const path = fc.array(fc.constantFrom('meta', 'onSuccess', 'a/b', '0', '~'), { maxLength: 6 })
  fc.assert(
    fc.property(path, fc.constantFrom(...POISONS), harmless, (keys, poison, beside) => {
      fc.pre(!hasHarmful(beside))
      const value = keys.reduceRight<unknown>((inner, key) => ({ beside, [key]: inner }), JSON.parse(poison))
      const found = poison.includes('constructor') ? ['constructor', 'prototype'] : ['__proto__']
      expect(errorsOf(value, ['body'])).toMatchObject({
        code: 'invalid_request',
        errors: [{ pointer: jsonPointer(['body', ...keys, ...found]) }],
      })
    }),
  )
})

test('other names of inherited properties are harmless', () => {
  fc.assert(
    fc.property(harmless, (value) => {
      fc.pre(!hasHarmful(value))
      expect(errorsOf(value)).toBeUndefined()
    }),
  )
  expect(errorsOf({ constructor: 'a', prototype: 'b' })).toBeUndefined()
  expect(errorsOf({ constructor: { name: 'a' } })).toBeUndefined()
})

test('the JSON of a value decides', () => {
  expect(errorsOf({ a: { toJSON: () => JSON.parse(POISONS[0]) } })).toMatchObject({
    errors: [{ pointer: '/a/__proto__' }],
  })
  expect(errorsOf({ a: Object.assign(JSON.parse(POISONS[0]), { toJSON: () => 'harmless' }) })).toBeUndefined()
  expect(errorsOf([new Date(0), '"__proto__"', { b: ['__proto__', 'prototype'] }])).toBeUndefined()
})

test('a value that JSON cannot represent is left to the code that stores it', () => {
  const loop: Record<string, unknown> = {}
  loop['self'] = [loop, loop]
  expect(errorsOf(loop)).toBeUndefined()
  const grows = { toJSON: () => ({ grows, again: grows }) }
  expect(errorsOf(grows)).toBeUndefined()
  expect(errorsOf([{ toJSON: () => expect.fail() }, 1n])).toBeUndefined()
  expect(errorsOf(undefined)).toBeUndefined()
})

test('the properties of binary data are not read', () => {
  const read = vi.fn()
  const bytes = Object.defineProperty(new Uint8Array(4), 'a', { enumerable: true, get: read })
  expect(errorsOf({ bytes, buffer: Object.assign(Buffer.alloc(4), { toJSON: read }) })).toBeUndefined()
  expect(read).not.toHaveBeenCalled()
})

test('a value that is nested deeply is searched as well', () => {
  let deep: unknown = JSON.parse(POISONS[0])
  for (let level = 0; level < 10_000; level++) deep = [deep]
  expect(errorsOf(deep)).toMatchObject({ errors: [{ pointer: `${'/0'.repeat(10_000)}/__proto__` }] })
})
