// Tests how the invalid parts of a request are located.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { bodyErrors, fieldErrorText, jsonPointer, parameterErrors } from './field-error.ts'

/** Returns the value to which a pointer refers, as RFC 6901 section 4 says. */
function valueAt(document: unknown, pointer: string): unknown {
  const tokens = pointer.split('/').slice(1)
  const keys = tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.reduce((value, key) => Object.getOwnPropertyDescriptor(value, key)?.value, document)
}

describe('a JSON Pointer', () => {
  // The examples of RFC 6901 section 5.
  test.each([
    [[], ''],
    [['foo', 0], '/foo/0'],
    [[''], '/'],
    [['a/b'], '/a~1b'],
    [['m~n'], '/m~0n'],
    [['~1'], '/~01'],
    [['input', 'lines', 3, 'sku'], '/input/lines/3/sku'],
  ])('to %j is %j', (path, pointer) => {
    expect(jsonPointer(path)).toBe(pointer)
  })

  test('refers to the value at its path, whatever the keys are', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.constantFrom('/', '~', '~0', '~1', '__proto__'))), (path) => {
        const leaf = {}
        const document = path.reduceRight<object>((inner, key) => Object.fromEntries([[key, inner]]), leaf)
        expect(valueAt(document, jsonPointer(path))).toBe(leaf)
      }),
    )
  })
})

describe('the errors of a body', () => {
  const errorsOf = (schema: z.ZodType, body: unknown) => {
    const { error } = schema.safeParse(body)
    return error && bodyErrors(error, ['input'])
  }

  test('have a pointer to each invalid value and to each unknown field', () => {
    const schema = z.strictObject({ lines: z.array(z.strictObject({ sku: z.string('text') })) })
    expect(errorsOf(schema, { lines: [{ sku: 7 }], 'a/b': 1, c: 2 })).toEqual([
      { pointer: '/input/lines/0/sku', message: 'text' },
      { pointer: '/input/a~1b', message: 'unknown field' },
      { pointer: '/input/c', message: 'unknown field' },
    ])
  })

  test('say what is accepted as the key of a record', () => {
    const permits = z.record(z.string().regex(/^[a-z]+$/, 'expected lower-case letters'), z.int())
    expect(errorsOf(permits, { DB: 3 })).toEqual([{ pointer: '/input/DB', message: 'expected lower-case letters' }])
  })

  test('list what each alternative of a union accepts', () => {
    const schema = z.object({ size: z.union([z.int('a number'), z.string('a text')]) })
    expect(errorsOf(schema, { size: null })).toEqual([{ pointer: '/input/size', message: 'a number; or a text' }])
  })
})

test('the errors of a query name the parameters', () => {
  const { error } = z.strictObject({ limit: z.string('missing') }).safeParse({ limt: '3' })
  expect(error && parameterErrors(error)).toEqual([
    { parameter: 'limit', message: 'missing' },
    { parameter: 'limt', message: 'unknown parameter' },
  ])
})

test.each([
  [{ pointer: '/input/n', message: 'too big' }, '/input/n: too big'],
  [{ pointer: '', message: 'specify a target' }, 'specify a target'],
  [{ parameter: 'wait', message: 'too long' }, 'wait: too long'],
  [{ header: 'Idempotency-Key', message: 'too long' }, 'Idempotency-Key: too long'],
])('the error %j is printed as %j', (error, text) => {
  expect(fieldErrorText(error)).toBe(text)
})
