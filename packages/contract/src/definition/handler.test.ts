// Tests how handlers are defined, found in a module, and checked against a catalogue by the compiler.
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from './catalogue.ts'
import { defineHandler, type Handlers, handlerIn, type TaskContext } from './handler.ts'
import { defineTask } from './task-definition.ts'

const size = defineTask({
  name: 'image.size',
  queue: 'cpu',
  input: z.object({ width: z.int().default(1), height: z.int() }),
  output: z.object({ area: z.int() }),
})
const welcome = defineTask({ name: 'email.welcome', queue: 'mail', input: z.object({}), output: z.object({}) })
const catalogue = defineCatalogue(size, welcome)

interface Mailer {
  readonly mailer: { send(): Promise<void> }
}

const handleSize = defineHandler(size, import.meta.url, ({ input }) => ({ area: input.width * input.height }))
const handleWelcome = defineHandler(
  welcome,
  import.meta.url,
  async ({ resources }: TaskContext<typeof welcome, Mailer>) => {
    await resources.mailer.send()
    return {}
  },
)

describe('a handler', () => {
  test('has its task and its module, and is immutable', () => {
    expect(handleSize).toMatchObject({ task: size, module: import.meta.url })
    expect(() => Object.assign(handleSize, { module: 'other' })).toThrow(TypeError)
  })

  test.each(['', './here.ts', '/abs/here.ts', 'https://example.org/x.js'])('rejects %j as its module', (module) => {
    expect(() => defineHandler(size, module, () => ({ area: 1 }))).toThrow(
      expect.objectContaining({ code: 'invalid_handler', message: expect.stringContaining('import.meta.url') }),
    )
  })

  test('is found among the exports of its module by the name of its task', () => {
    const exports = { a: undefined, b: null, c: 'text', d: { task: size }, default: handleSize, other: handleWelcome }
    expect(handlerIn(exports, 'email.welcome', 'm.ts')).toBe(handleWelcome)
    expect(handlerIn(exports, 'image.size', 'm.ts')).toBe(handleSize)
    expect(() => handlerIn(exports, 'image.crop', 'm.ts')).toThrow(
      expect.objectContaining({
        code: 'invalid_handler',
        message: expect.stringMatching(/^m\.ts does not export .*image\.crop/),
      }),
    )
    expect(() => handlerIn({}, 'image.size', 'm.ts')).toThrow()
  })
})

test('a context has the types of its definition', () => {
  defineHandler(size, import.meta.url, (context) => {
    expectTypeOf(context.input).toEqualTypeOf<{ width: number; height: number }>()
    expectTypeOf(context.name).toEqualTypeOf<'image.size'>()
    expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>()
    return { area: 1 }
  })
  // @ts-expect-error: the output is the definition's.
  defineHandler(size, import.meta.url, () => ({ area: '1' }))
  // @ts-expect-error: also as a promise.
  defineHandler(size, import.meta.url, async () => ({}))
})

// None of these may compile: tsc fails if one of the comments is not needed.
test('the compiler checks handlers against their catalogue', () => {
  const whole = { 'image.size': handleSize, 'email.welcome': handleWelcome } satisfies Handlers<
    typeof catalogue,
    Mailer
  >
  expect(Object.keys(whole)).toEqual(['image.size', 'email.welcome'])

  // @ts-expect-error: a task without a handler.
  ;({ 'image.size': handleSize }) satisfies Handlers<typeof catalogue, Mailer>

  // @ts-expect-error: a handler without a task.
  ;({ 'image.size': handleSize, 'email.welcome': handleWelcome, 'image.crop': handleSize }) satisfies Handlers<
    typeof catalogue,
    Mailer
  >

  ;({
    // @ts-expect-error: the handler of another task.
    'image.size': handleWelcome,
    'email.welcome': handleWelcome,
  }) satisfies Handlers<typeof catalogue, Mailer>

  ;({
    'image.size': handleSize,
    // @ts-expect-error: a handler that needs a resource that the worker does not open.
    'email.welcome': handleWelcome,
  }) satisfies Handlers<typeof catalogue, { readonly database: object }>
})
