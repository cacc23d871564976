// Tests catalogues, queues, and the suggestions for misspelt names.
import fc from 'fast-check'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { type DefinitionsOf, defineCatalogue, type NamesOf } from './catalogue.ts'
import { nearest } from './nearest.ts'
import { defineQueue } from './queue.ts'
import { defineTask } from './task-definition.ts'

const task = <const Name extends `${string}.${string}`>(name: Name, queue: string) =>
  defineTask({ name, queue, input: z.object({}), output: z.object({}) })

const [resize, crop, welcome] = [task('image.resize', 'cpu'), task('image.crop', 'cpu'), task('email.welcome', 'mail')]
const catalogue = defineCatalogue(resize, welcome, crop)

describe('a catalogue', () => {
  test('finds definitions by name and lists each queue once', () => {
    expect(catalogue.get('image.crop')).toBe(crop)
    expect(catalogue.has('image.crop')).toBe(true)
    expect(catalogue.has('image.turn')).toBe(false)
    expect(catalogue.has('toString')).toBe(false)
    expect(catalogue.queues).toEqual(['cpu', 'mail'])
    expect(catalogue.definitions).toEqual([resize, welcome, crop])
  })

  test('suggests the nearest name for an unknown task', () => {
    const unknown = (message: string) => expect.objectContaining({ code: 'unknown_task', message })
    expect(() => catalogue.get('image.rezise')).toThrow(
      unknown(`unknown task "image.rezise"; did you mean image.resize?`),
    )
    expect(() => catalogue.get('x')).toThrow(unknown('unknown task "x"'))
  })

  test('defines what happens to waiting tasks when a queue shuts down', () => {
    const mail = defineQueue({ name: 'mail', onShutdown: 'cancel' })
    const ofQueue = (name: `${string}.${string}`, queue: string | typeof mail) =>
      defineTask({ name, queue, input: z.object({}), output: z.object({}) })
    const both = defineCatalogue(ofQueue('mail.send', mail), ofQueue('mail.drop', mail), resize)
    expect(both.queues).toEqual(['mail', 'cpu'])
    expect(['mail', 'cpu', 'unknown'].map((name) => both.queue(name).onShutdown)).toEqual(['cancel', 'keep', 'keep'])
    expect(() => defineCatalogue(ofQueue('mail.send', mail), ofQueue('mail.drop', 'mail'))).toThrow(
      expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining("'mail.drop'") }),
    )
  })

  test('defines how long idempotency keys live in a queue', () => {
    const mail = defineQueue({ name: 'mail', idempotencyLife: '2h' })
    const send = defineTask({ name: 'mail.send', queue: mail, input: z.object({}) })
    const both = defineCatalogue(send, resize)
    expect(['mail', 'cpu', 'unknown'].map((name) => both.queue(name).idempotencyLifeS)).toEqual([
      7_200,
      undefined,
      undefined,
    ])
    const other = defineTask({ name: 'mail.drop', queue: defineQueue({ name: 'mail' }), input: z.object({}) })
    expect(() => defineCatalogue(send, other)).toThrow(
      /idempotencyLifeS of queue 'mail' is 7200 in 'mail.send' and undefined in 'mail.drop'/,
    )
  })

  test.each([
    [{ name: 'Mail' }, 'invalid name; expected a lower-case letter'],
    [{ name: 'mail', onShutdown: 'drop' }, "expected 'keep' or 'cancel'"],
    [{ name: 'mail', onShutDown: 'cancel' }, 'did you mean onShutdown?'],
    [{ name: 'mail', idempotencyLife: '10ms' }, "the shortest is '1s'"],
  ])('the queue %j is rejected', (options, message) => {
    expect(() => defineQueue(options as never)).toThrow(
      expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
    )
    expect(() => defineTask({ name: 'a.b', queue: options as never, input: z.any(), output: z.any() })).toThrow(
      expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining('queue') }),
    )
  })

  test('rejects duplicate names and an empty list', () => {
    const refusal = expect.objectContaining({ code: 'invalid_definition' })
    expect(() => defineCatalogue(resize, task('image.resize', 'mail'))).toThrow(refusal)
    // @ts-expect-error: a catalogue needs at least one definition.
    expect(() => defineCatalogue()).toThrow(refusal)
  })

  test('is immutable', () => {
    expect(() => Object.assign(catalogue, { queues: [] })).toThrow(TypeError)
    expect(() => Object.assign(catalogue.definitions, [crop])).toThrow(TypeError)
  })

  test('has the types of its names and definitions', () => {
    expectTypeOf<NamesOf<typeof catalogue>>().toEqualTypeOf<'image.resize' | 'image.crop' | 'email.welcome'>()
    expectTypeOf<DefinitionsOf<typeof catalogue>>().toEqualTypeOf<typeof resize | typeof crop | typeof welcome>()
  })
})

describe('the nearest name', () => {
  const known = ['image.resize', 'image.crop', 'email.welcome']

  test('is found in spite of one mistake, and in any case', () => {
    const mistakes = fc.constantFrom(...known).chain((name) =>
      fc.record({
        name: fc.constant(name),
        at: fc.nat(name.length - 1),
        kind: fc.constantFrom('drop', 'double', 'change', 'shout'),
      }),
    )
    fc.assert(
      fc.property(mistakes, ({ name, at, kind }) => {
        const typed = {
          drop: name.slice(0, at) + name.slice(at + 1),
          double: name.slice(0, at) + name.charAt(at) + name.slice(at),
          change: `${name.slice(0, at)}#${name.slice(at + 1)}`,
          shout: name.toUpperCase(),
        }[kind]
        expect(nearest(typed, known)).toBe(name)
      }),
    )
  })

  test('is the nearest of several, and always a known one', () => {
    expect(nearest('poo', ['pools', 'pool', 'port'])).toBe('pool')
    fc.assert(fc.property(fc.string(), (word) => void expect([undefined, ...known]).toContain(nearest(word, known))))
  })

  test.each(['', 'x', 'zzzzzzzzzzzz', 'z'.repeat(10_000)])('is undefined if nothing is near: %s', (word) => {
    expect(nearest(word, known)).toBeUndefined()
    expect(nearest(word, [])).toBeUndefined()
  })

  test('is found for a text of any length', () => {
    // Without a limit on the length, this would take minutes.
    expect(nearest('z'.repeat(10_000_000), Array(100).fill('y'.repeat(10_000)))).toBeUndefined()
  })
})
