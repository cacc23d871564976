// Tests that sensitive values of inputs reach neither attempt records nor log lines nor events, and that other text is unchanged.
import { defineHandler, defineTask } from '@bullpen/contract'
import { runTask } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { redactorOf } from './redactor.ts'
import { hasSensitiveParts } from './sensitive-values.ts'

const secret = () => z.string().meta({ sensitive: true })
const redact = (input: z.ZodType, given: unknown, text: string) => redactorOf({ input }, [given])?.text(text)

interface Category {
  readonly name: string
  readonly parts: readonly Category[]
}
const category: z.ZodType<Category> = z.object({
  name: secret(),
  get parts() {
    return z.array(category)
  },
})

describe('a sensitive value', () => {
  it.each<[string, z.ZodType, unknown]>([
    ['a field', z.object({ card: secret() }), { card: 'hidden-1' }],
    ['an optional field', z.object({ card: secret().optional() }), { card: 'hidden-1' }],
    ['a field whose schema was refined later', z.object({ card: secret().min(3).nullable() }), { card: 'hidden-1' }],
    ['a field with a default', z.object({ card: secret().default('x') }), { card: 'hidden-1' }],
    ['an element', z.object({ cards: z.array(secret()) }), { cards: ['a', 'hidden-1'] }],
    [
      'a part of a sensitive object',
      z.object({ user: z.object({ n: z.string() }).meta({ sensitive: true }) }),
      { user: { n: 'hidden-1' } },
    ],
    ['a value of a record', z.record(z.string(), secret()), { a: 'hidden-1' }],
    ['a key of a record', z.record(secret(), z.int()), { 'hidden-1': 1 }],
    ['a key of a sensitive record', z.record(z.string(), z.int()).meta({ sensitive: true }), { 'hidden-1': 1 }],
    [
      'a key within a sensitive object',
      z.object({ cards: z.object({ limits: z.record(z.string(), z.int()).optional() }).meta({ sensitive: true }) }),
      { cards: { limits: { 'hidden-1': 1 } } },
    ],
    ['a key of a sensitive value of any kind', z.unknown().meta({ sensitive: true }), [{ 'hidden-1': true }]],
    ['a part of a tuple', z.tuple([z.string(), secret()]), ['a', 'hidden-1']],
    ['an option of a union', z.union([z.object({ a: z.string() }), z.object({ b: secret() })]), { b: 'hidden-1' }],
    [
      'a part of an intersection',
      z.intersection(z.object({ a: secret() }), z.object({ b: z.string() })),
      { a: 'hidden-1', b: 'b' },
    ],
    ['the input of a transform', z.object({ card: secret().transform((card) => card.length) }), { card: 'hidden-1' }],
    ['a part of a recursive value', category, { name: 'outer', parts: [{ name: 'hidden-1', parts: [] }] }],
    ['a lazy schema', z.lazy(() => z.object({ card: secret() })), { card: 'hidden-1' }],
  ])('is found as %s', (_, input, given) => {
    expect(redact(input, given, 'card hidden-1 was declined')).toBe('card [redacted] was declined')
  })

  it('is not the name of a field or of a key that the schema lists', () => {
    const street = z.object({ street: z.string() })
    const limits = z.record(z.enum(['daily', 'weekly']), z.int())
    const input = z.object({ home: z.union([street, z.object({ limits })]).meta({ sensitive: true }) })
    const text = 'no street, daily limits'
    expect(redact(input, { home: { street: 'hidden-1' } }, `${text} hidden-1`)).toBe(`${text} [redacted]`)
    expect(redact(input, { home: { limits: { daily: 4711 } } }, `${text} 4711`)).toBe(`${text} [redacted]`)
  })

  it('is found in JSON, in URLs and as a number, with the longest value first', () => {
    const input = z.object({ a: secret(), b: secret(), pin: z.int().meta({ sensitive: true }) })
    const given = { a: 'say "x" & go', b: 'say "x" & go on', pin: 4242 }
    const redactor = redactorOf({ input }, [given])
    expect(redactor?.text(`${JSON.stringify(given)} ${encodeURIComponent(given.b)}`)).toBe(
      '{"a":"[redacted]","b":"[redacted]","pin":[redacted]} [redacted]',
    )
    expect(redactor?.value({ pin: 4242, list: [{ n: 42 }], at: new Date(0) })).toEqual({
      pin: '[redacted]',
      list: [{ n: 42 }],
      at: '1970-01-01T00:00:00.000Z',
    })
  })

  it('is found as the date or the integer that its schema has made of it', () => {
    const input = z.object({
      born: z.coerce.date().meta({ sensitive: true }),
      account: z.coerce.bigint().meta({ sensitive: true }),
    })
    const given = { born: '4 May 1980 UTC', account: '0012345' }
    const parsed = input.parse(given)
    const redactor = redactorOf({ input }, [given, parsed])
    expect(redactor?.text(`${parsed.born} ${JSON.stringify(parsed.born)} 1980-05-04 ${parsed.account}`)).toBe(
      '[redacted] "[redacted]" [redacted] [redacted]',
    )
    expect(redactor?.value({ ...parsed, other: 42n })).toEqual({
      born: '[redacted]',
      account: '[redacted]',
      other: 42n,
    })
  })

  it('is removed from an error, its stack and its causes, without changing the error of the handler', () => {
    const cause = Object.assign(new Error('POST /cards/hidden-1'), { code: 'E_CARD' })
    const error = new TypeError('no card hidden-1', { cause })
    const redactor = redactorOf({ input: z.object({ card: secret() }) }, [{ card: 'hidden-1' }])
    const shown = redactor?.value(error) as Error
    expect(shown).toMatchObject({ name: 'TypeError', message: 'no card [redacted]', cause: { code: 'E_CARD' } })
    expect(`${shown.stack} ${(shown.cause as Error).stack}`).not.toContain('hidden-1')
    expect(error.message).toBe('no card hidden-1')
    const harmless = new Error('no card')
    expect(redactor?.value(harmless)).toBe(harmless)
  })

  it('is looked for in any input, and does not appear if what contains it cannot be read', () => {
    expect(redact(z.object({ card: secret() }), { card: 'hidden-1', constructor: 1 }, 'hidden-1')).toBe('[redacted]')
    const redactor = redactorOf({ input: z.object({ card: secret() }) }, [{ card: 'hidden-1' }])
    const unreadable = {
      toJSON() {
        throw new Error('unreadable')
      },
    }
    expect(redactor?.value({ unreadable })).toEqual({ '[redacted]': true })
    expect(redactor?.value(new Error('hidden-1', { cause: unreadable }))).toMatchObject({ message: '[redacted]' })
  })

  it('costs nothing if the schema marks none', () => {
    expect(hasSensitiveParts(z.object({ a: z.string(), b: z.array(z.union([z.string(), z.int()])) }))).toBe(false)
    expect(redactorOf({ input: z.object({ a: z.string() }) }, [{ a: 'text' }])).toBeUndefined()
  })
})

describe('an attempt of a task with sensitive fields', () => {
  const pay = defineTask({
    name: 'cards.pay',
    queue: 'cards',
    input: z.object({ card: secret(), shop: z.string() }),
    retry: { maxAttempts: 1 },
  })
  const input = { card: 'hidden-1', shop: 'north' }

  it('shows them neither in its record nor in its log lines nor in its events', async () => {
    const handler = defineHandler(pay, import.meta.url, ({ input: { card, shop }, log }) => {
      log.info({ card, shop }, `paying with ${card}`)
      throw new Error(`the bank of ${shop} declined ${card}`)
    })
    const run = await runTask(pay, handler, input)
    expect(run.logs).toMatchObject([
      { message: 'paying with [redacted]', fields: { card: '[redacted]', shop: 'north' } },
    ])
    const errors = run.errors.map((error) => (error as Error).stack)
    expect(errors).toHaveLength(1)
    expect(JSON.stringify([run.attempts, run.logs, run.events, errors])).not.toContain('hidden-1')
    expect(run.attempts[0]?.message).toContain('the bank of north declined [redacted]')
  })
})
