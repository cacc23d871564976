// Tests what the errors for unknown fields and parameters say.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { withAcceptedNames } from './unknown-names.ts'

const schema = z.strictObject({
  delay: z.string().optional(),
  unique: z.strictObject({ key: z.string(), 'a/b': z.string() }).optional(),
  lines: z.array(z.strictObject({ sku: z.string() })).default([]),
  nothing: z.strictObject({}).nullable(),
})
const all = 'delay, unique, lines, nothing'

test.each([
  ['/delya', 'unknown field; did you mean delay?'],
  ['/colour', `unknown field; expected ${all}`],
  ['/unique/colour', 'unknown field; expected key, a/b'],
  ['/unique/a~1c', 'unknown field; did you mean a/b?'],
  ['/lines/3/colour', 'unknown field; expected sku'],
  ['/nothing/colour', 'unknown field; expected none'],
  ['/delay/colour', 'unknown field'],
])('%s: %s', (pointer, message) => {
  expect(withAcceptedNames(schema, [{ pointer, message: 'unknown field' }])).toEqual([{ pointer, message }])
})

test('a parameter gets the nearest name, and other errors stay as they are', () => {
  const errors = [
    { parameter: 'dealy', message: 'unknown parameter' },
    { pointer: '/delay', message: 'expected a string' },
    { header: 'Idempotency-Key', message: 'unknown field' },
  ]
  const [first, ...rest] = withAcceptedNames(schema, errors)
  expect(first).toEqual({ parameter: 'dealy', message: 'unknown parameter; did you mean delay?' })
  expect(rest).toEqual(errors.slice(1))
})

test('the accepted names are listed once for each object, and only for errors that a response contains', () => {
  const unknown = (pointer: string) => ({ pointer, message: 'unknown field' })
  const errors = [
    unknown('/colour'),
    unknown('/flavour'),
    ...Array.from({ length: 20 }, (_, i) => unknown(`/unique/${i}`)),
  ]
  const messages = withAcceptedNames(schema, errors).map(({ message }) => message)
  expect(messages.slice(0, 3)).toEqual([
    `unknown field; expected ${all}`,
    'unknown field',
    'unknown field; expected key, a/b',
  ])
  expect(new Set(messages.slice(3))).toEqual(new Set(['unknown field']))
  expect(
    withAcceptedNames(
      schema,
      Array.from({ length: 21 }, () => unknown('/delya')),
    ).at(20)?.message,
  ).toBe('unknown field')
})
