// Tests that people who look at an input do not see its sensitive parts.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { redactedInput } from './redacted-input.ts'

const secret = () => z.string().meta({ sensitive: true })

describe('an input that is shown', () => {
  it.each<[string, z.ZodType, unknown, unknown]>([
    [
      'a field',
      z.object({ card: secret(), shop: z.string() }),
      { card: 'x', shop: 'n' },
      { card: '[redacted]', shop: 'n' },
    ],
    ['an optional field', z.object({ card: secret().min(3).optional() }), { card: 'x' }, { card: '[redacted]' }],
    ['a missing field', z.object({ card: secret().optional() }), { other: 1 }, { other: 1 }],
    [
      'a whole object',
      z.object({ user: z.object({ n: z.int() }).meta({ sensitive: true }) }),
      { user: { n: 1 } },
      { user: '[redacted]' },
    ],
    ['the values of a record', z.record(z.string(), secret()), { a: 'x' }, { a: '[redacted]' }],
    ['the keys of a record', z.record(secret(), z.int()), { ann: 1, bob: 2 }, { '[redacted] 1': 1, '[redacted] 2': 2 }],
    [
      'elements',
      z.object({ cards: z.array(secret()) }),
      { cards: ['x', 'y'] },
      { cards: ['[redacted]', '[redacted]'] },
    ],
    ['a part of a tuple', z.tuple([z.string(), secret()]), ['a', 'x'], ['a', '[redacted]']],
    [
      'an option of a union',
      z.union([z.object({ a: z.string() }), z.object({ b: secret() })]),
      { b: 'x' },
      { b: '[redacted]' },
    ],
    ['the input of a transform', z.object({ card: secret().transform(Number) }), { card: 'x' }, { card: '[redacted]' }],
    ['a value of another type', z.object({ cards: z.array(secret()) }), { cards: 'none' }, { cards: 'none' }],
    ['an inherited name', z.object({ card: secret() }), { constructor: 'c' }, { constructor: 'c' }],
  ])('does not contain %s that is sensitive', (_, input, given, shown) => {
    expect(redactedInput({ input }, given)).toEqual(shown)
  })

  it('is not copied if nothing is sensitive', () => {
    const given = { n: 1 }
    expect(redactedInput({ input: z.object({ n: z.int() }) }, given)).toBe(given)
  })
})
