// Tests the examples of request bodies.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { exampleOf } from './examples.ts'

test.each([
  [z.object({ n: z.int().min(5), more: z.string().optional() }), { n: 5 }],
  [z.object({ at: z.iso.datetime(), id: z.uuid() }), expect.objectContaining({ at: '2026-01-01T00:00:00Z' })],
  [z.object({ kind: z.enum(['a', 'b']), on: z.boolean() }), { kind: 'a', on: true }],
  [z.object({ list: z.array(z.string()).min(1) }), { list: ['text'] }],
  [z.object({ value: z.union([z.literal('none'), z.int()]) }), { value: 'none' }],
  [z.object({ n: z.number().positive().max(0.5) }), { n: 0.5 }],
  [z.object({ path: z.string().meta({ examples: ['/a/b'] }) }), { path: '/a/b' }],
])('an example has the required fields with accepted values (%#)', (schema, example) => {
  expect(exampleOf(schema)).toEqual(example)
  expect(schema.safeParse(exampleOf(schema)).success).toBe(true)
})

test.each([
  [z.object({ code: z.string().regex(/^[A-Z]{3}-\d+$/) })],
  [z.object({ n: z.int().refine((n) => n > 1_000) })],
  [z.string().transform(() => Promise.resolve(1))],
])('a schema that accepts no simple value has no example (%#)', (schema) => {
  expect(exampleOf(schema)).toBeUndefined()
})
