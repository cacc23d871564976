// Tests what defineTask accepts, rejects and infers, and its defaults.
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { RetryBudgetOptions } from './retry/retry-budget.ts'
import { DEFAULT_RETRY, type RetryOptions } from './retry/retry-policy.ts'
import {
  defineTask,
  type InputOf,
  type OutputOf,
  type ParsedInputOf,
  type ReturnOf,
  type TaskDefinition,
} from './task-definition.ts'

const minimal = { name: 'email.welcome', queue: 'mail', input: z.object({}), output: z.object({}) } as const

/** Without the compiler's checks, as from plain JavaScript. */
const define = (options: object) => defineTask(options as typeof minimal)
const refusal = (message: string | RegExp, code = 'invalid_definition') =>
  expect.objectContaining({ code, message: expect.stringMatching(message) })

describe('a definition', () => {
  test('says when enqueues are acknowledged', () => {
    expect(defineTask(minimal).durability).toBe('primary')
    expect(defineTask({ ...minimal, durability: 'replicated' }).durability).toBe('replicated')
    expect(() => define({ ...minimal, durability: 'replica' })).toThrow(
      refusal("durability is \"replica\"; expected 'primary' or 'replicated'"),
    )
  })

  test('has defaults for everything but name, queue, input and output', () => {
    expect(defineTask(minimal)).toMatchObject({
      name: 'email.welcome',
      version: 1,
      queue: 'mail',
      summary: undefined,
      kind: 'long',
      timeoutMs: undefined,
      graceMs: undefined,
      retry: DEFAULT_RETRY,
      isolation: 'inline',
      onInterrupt: 'requeue',
    })
  })

  test('has durations in milliseconds, and limits that may be none', () => {
    const retry = { maxAttempts: 3, backoff: { initialDelay: '2s', maxDelay: '1m', jitter: 0 } } as const
    expect(defineTask({ ...minimal, timeout: '5m', grace: 'none', retry, isolation: 'process' })).toMatchObject({
      timeoutMs: 300_000,
      graceMs: 'none',
      isolation: 'process',
      retry: {
        maxAttempts: 3,
        backoff: { type: 'exponential', initialMs: 2_000, maxMs: 60_000, factor: 2, jitter: 0 },
      },
    })
  })

  test('has a retry budget, unless it is turned off', () => {
    const budgetOf = (budget: RetryBudgetOptions | 'none' | undefined) =>
      defineTask({ ...minimal, retry: budget === undefined ? {} : { budget } }).retry.budget
    expect(budgetOf(undefined)).toEqual({ ratio: 0.2, minRetriesPerSecond: 10 })
    expect(budgetOf({ ratio: 0 })).toEqual({ ratio: 0, minRetriesPerSecond: 10 })
    expect(budgetOf('none')).toBeUndefined()
  })

  test('allows its calls only the attempts and delays of its own policy, unless it has other bounds', () => {
    const boundsOf = (retry: RetryOptions) => defineTask({ ...minimal, retry }).retry.callBounds
    expect(defineTask(minimal).retry).toEqual(DEFAULT_RETRY)
    expect(boundsOf({ maxAttempts: 3, backoff: { type: 'fixed', initialDelay: '2s' } })).toEqual({
      maxAttempts: 3,
      minDelayMs: 2_000,
      maxDelayMs: 2_000,
    })
    expect(boundsOf({ backoff: { type: 'list', delays: ['1m', '1s', '1h'] } })).toMatchObject({
      minDelayMs: 1_000,
      maxDelayMs: 3_600_000,
    })
    const callBounds = { maxAttempts: 20, minDelay: '500ms', maxDelay: '1d', totalTimeout: '7d' } as const
    expect(boundsOf({ callBounds })).toEqual({
      maxAttempts: 20,
      minDelayMs: 500,
      maxDelayMs: 86_400_000,
      totalMs: 604_800_000,
    })
  })

  test('has its memory limit in bytes', () => {
    expect(defineTask({ ...minimal, isolation: 'process', memoryLimit: '1GiB' }).memoryLimitBytes).toBe(2 ** 30)
    expect(defineTask(minimal).memoryLimitBytes).toBeUndefined()
  })

  test('may say how long an attempt takes, which limits nothing', () => {
    expect(defineTask(minimal).expectedMs).toBeUndefined()
    const short = defineTask({ ...minimal, kind: 'short', expectedDuration: '250ms' })
    expect([short.expectedMs, short.timeoutMs]).toEqual([250, undefined])
    expect(() => define({ ...minimal, expectedDuration: '2' })).toThrow(
      refusal('expectedDuration of email.welcome is "2"', 'invalid_duration'),
    )
  })

  test('may have no output, which is then void', () => {
    const { output: _, ...withoutOutput } = minimal
    const task = defineTask(withoutOutput)
    expect(task.output.safeParse(undefined).success).toBe(true)
    expect(task.output.safeParse(1).success).toBe(false)
    expectTypeOf<OutputOf<typeof task>>().toEqualTypeOf<void>()
  })

  test('has a priority', () => {
    expect(defineTask(minimal).priority).toBe(0)
    expect(defineTask({ ...minimal, priority: 9 }).priority).toBe(9)
  })

  test.each([
    ['a coerced date', z.object({ at: z.coerce.date() })],
    ['a preprocessed date', z.object({ at: z.preprocess((value) => new Date(String(value)), z.date()) })],
    ['a string that becomes a date', z.object({ at: z.iso.datetime().transform((text) => new Date(text)) })],
    ['a coerced bigint', z.coerce.bigint()],
    ['nothing', z.undefined()],
    ['anything', z.unknown()],
  ])('accepts %s as input, because JSON can carry it', (_, input) => {
    expect(() => defineTask({ ...minimal, input })).not.toThrow()
  })

  test('is immutable', () => {
    const task = defineTask(minimal)
    expect(() => Object.assign(task, { queue: 'other' })).toThrow(TypeError)
    expect(() => Object.assign(task.retry, { maxAttempts: 9 })).toThrow(TypeError)
  })
})

describe('defineTask rejects', () => {
  test.each([
    [{ retry: { maxAttempts: 4, callBounds: { maxAttempts: 3 } } }, /from 4 \(retry.maxAttempts\) to 1000/],
    [{ retry: { callBounds: { maxAttempts: 1_001 } } }, /from 5 \(retry.maxAttempts\) to 1000/],
    [{ retry: { callBounds: { minDelay: '2s' } } }, /minDelay is '2s'; expected at most '1s'/],
    [{ retry: { callBounds: { maxDelay: '1m' } } }, /maxDelay is '1m'; expected at least '5m'/],
    [{ retry: { callBounds: { longestDelay: '1m' } } }, /retry.callBounds.longestDelay is not a setting/],
    [{ retry: { callBounds: 3 } }, /retry.callBounds is 3; expected an object/],
    [
      { totalTimeout: '2h', retry: { callBounds: { totalTimeout: '1h' } } },
      /expected at least the task's totalTimeout, '2h'/,
    ],
    [{ totalTimeout: 'none', retry: { callBounds: { totalTimeout: '1h' } } }, /the task's totalTimeout, 'none'/],
    [{ kind: 'short', retry: { callBounds: { totalTimeout: '1h' } } }, /totalTimeout requires kind: 'long'/],
  ])('the bounds for calls in %j', (options, message) => {
    expect(() => define({ ...minimal, ...options })).toThrow(refusal(message))
  })

  test.each([
    [{ timeout: '10s', heartbeatTimeout: '10s' }, /heartbeatTimeout \(10000 ms\) is not shorter than timeout/],
    [{ timeout: '10s', totalTimeout: '9s' }, /timeout \(10000 ms\) is longer than totalTimeout \(9000 ms\)/],
    [{ heartbeatTimeout: '1m', totalTimeout: '1m' }, /heartbeatTimeout \(60000 ms\) is not shorter than totalTimeout/],
  ])('the contradiction %j', (limits, message) => {
    expect(() => define({ ...minimal, ...limits })).toThrow(refusal(message))
  })

  test.each([
    [{ memoryLimit: '256MiB' }, /memoryLimit requires isolation: 'process'/],
    [{ memoryLimit: '256MiB', isolation: 'thread' }, /V8 may abort the whole worker/],
    [{ memoryLimit: '32MiB', isolation: 'process' }, /expected at least '64MiB'/],
    [{ memoryLimit: '256MB', isolation: 'process' }, /expected a whole number with MiB or GiB/],
  ])('the memory limit of %j', (limits, message) => {
    expect(() => define({ ...minimal, ...limits })).toThrow(refusal(message))
  })

  test.each([
    [{ queue: undefined }, /queue is undefined/],
    [{ name: ['email.welcome'] }, /invalid name; expected a letter followed by/],
    [{ input: undefined }, /input is undefined; expected a zod schema/],
    [{ output: { type: 'object' } }, /output is {"type":"object"}; expected a zod schema/],
    [{ retry: 5 }, /retry is 5; expected an object/],
    [{ retry: { retries: 9 } }, /retry\.retries is not a setting; expected maxAttempts, backoff, budget/],
    [{ retry: { backoff: { jitter: '0.5' } } }, /retry\.backoff\.jitter is 0\.5/],
  ])('what the compiler would reject: %j', (wrong, message) => {
    expect(() => define({ ...minimal, ...wrong })).toThrow(refusal(message))
  })

  test.each([
    [
      z.object({ sent: z.object({ at: z.date().optional() }) }),
      'input.sent.at is z.date(), which JSON cannot represent; use z.iso',
    ],
    [z.object({ ids: z.array(z.bigint()) }), 'input.ids[] is z.bigint(), which JSON cannot represent; use z.string()'],
    [
      z.union([z.string(), z.map(z.string(), z.number())]),
      'input is z.map(), which JSON cannot represent; use z.record()',
    ],
    [z.record(z.string(), z.set(z.string())), 'input[*] is z.set(), which JSON cannot represent; use z.array()'],
  ])('an input that JSON cannot represent: %#', (input, message) => {
    expect(() => define({ ...minimal, input })).toThrow(`task "email.welcome": ${message}`)
  })

  test.each([-1, 10, 1.5, '1'])('the priority %j', (priority) => {
    expect(() => define({ ...minimal, priority })).toThrow(
      refusal(/priority is .*; expected a whole number from 0 to 9/),
    )
  })

  test('an unknown setting, with a suggestion', () => {
    expect(() => define({ ...minimal, timeot: '5s' })).toThrow(
      refusal(/timeot is not a task setting; did you mean timeout\?/),
    )
    expect(() => define({ ...minimal, kind: 'short', totalTimeout: '5s' })).toThrow(
      refusal(/totalTimeout requires kind: 'long'/),
    )
  })

  test.each([
    '',
    '.welcome',
    '_welcome',
    '__proto__',
    'email welcome',
    'email.welcome\n',
    '1.x',
    'a.b:c',
    'émail',
    'e'.repeat(101),
    null,
  ])('the name %j', (name) => {
    expect(() => define({ ...minimal, name })).toThrow(
      refusal(/^task .*: invalid name; expected a letter followed by/s),
    )
  })

  test.each(['sendWelcome', 'digest', 'send-email', 'send_email', 'Email.Welcome.', 'constructor', 'e'.repeat(100)])(
    'not the name %j, because jobs of other queues have such names',
    (name) => {
      expect(define({ ...minimal, name }).name).toBe(name)
    },
  )

  test.each(['', 'Mail', '-mail', 'mail:out', '1mail', 'm'.repeat(41)])('the queue %j', (queue) => {
    expect(() => define({ ...minimal, queue })).toThrow(refusal(/^task "email\.welcome": queue is /))
  })

  test.each([0, -1, 1.5, Number.NaN, '1'])('the version %j', (version) => {
    expect(() => define({ ...minimal, version })).toThrow(refusal('version is'))
  })

  test.each([0, '0s'])('a timeout of %j, and says how to have none', (timeout) => {
    const message = /^timeout of email\.welcome is .*; use 'none' for no limit, or leave it out/
    expect(() => define({ ...minimal, timeout })).toThrow(refusal(message, 'invalid_duration'))
  })

  test.each(['timeout', 'grace'])('a number without a unit as %s', (setting) => {
    expect(() => define({ ...minimal, [setting]: '30' })).toThrow(
      refusal(`${setting} of email.welcome is "30"`, 'invalid_duration'),
    )
  })

  test('an unknown kind, isolation or onInterrupt', () => {
    expect(() => define({ ...minimal, kind: 'medium' })).toThrow(refusal('kind is "medium"'))
    expect(() => define({ ...minimal, isolation: 'fork' })).toThrow(refusal('isolation is "fork"'))
    expect(() => define({ ...minimal, onInterrupt: 'retry' })).toThrow(refusal('onInterrupt is "retry"'))
  })

  test.each(['timeout', 'grace', 'isolation'])('%s of a short task', (setting) => {
    expect(() => define({ ...minimal, kind: 'short', [setting]: setting === 'isolation' ? 'thread' : '1s' })).toThrow(
      refusal(`${setting} requires kind: 'long'`),
    )
  })

  test.each([
    [{ maxAttempts: 0 }, 'retry.maxAttempts is 0'],
    [{ maxAttempts: 1_001 }, 'retry.maxAttempts is 1001'],
    [{ maxAttempts: 1.5 }, 'retry.maxAttempts is 1.5'],
    [{ maxAttempts: Number.NaN }, 'retry.maxAttempts is NaN'],
    [{ attempts: 3 }, 'retry.attempts is not a setting; did you mean retry.maxAttempts'],
    [{ backoff: 'slow' }, 'retry.backoff is "slow"; expected an object'],
    [{ backoff: { type: 'slow' } }, 'retry.backoff.type is "slow"; expected one of exponential, linear, fixed, list'],
    [{ backoff: { base: '1s' } }, 'retry.backoff.base is not a setting'],
    [{ backoff: { type: 'fixed', maxDelay: '1m' } }, 'retry.backoff.maxDelay is not a setting'],
    [{ backoff: { factor: 0.5 } }, 'retry.backoff.factor is 0.5; expected a number from 1 to 100'],
    [
      { backoff: { type: 'list', delays: Array<'1s'>(1_001).fill('1s') } },
      'retry.backoff.delays has 1001; expected 1 to 1000 durations',
    ],
    [{ backoff: { type: 'list', delays: [] } }, String.raw`retry.backoff.delays is \[\]; expected 1 to 1000 durations`],
    [{ backoff: { jitter: -0.1 } }, 'retry.backoff.jitter is -0.1'],
    [{ backoff: { jitter: 1.1 } }, 'retry.backoff.jitter is 1.1'],
    [{ backoff: { jitter: Number.NaN } }, 'retry.backoff.jitter is NaN'],
    [{ backoff: { jitter: 'half' } }, "retry.backoff.jitter is half; expected a number from 0 to 1, or 'full'"],
    [{ budget: 0.2 }, "retry.budget is 0.2; expected 'none' or an object such as { ratio: 0.1 }"],
    [{ budget: { share: 0.1 } }, 'retry.budget.share is not a setting; expected ratio, minRetriesPerSecond'],
    [{ budget: { ratio: 20 } }, 'retry.budget.ratio is 20; expected a number from 0 to 1'],
    [
      { budget: { minRetriesPerSecond: 0 } },
      'retry.budget.minRetriesPerSecond is 0; expected a number from 0.01 to 10000',
    ],
    [
      { backoff: { initialDelay: '10s', maxDelay: '5s' } },
      String.raw`retry.backoff.maxDelay \(5000 ms\) is shorter than retry.backoff.initialDelay \(10000 ms\)`,
    ],
  ])('the retry policy %j', (retry, message) => {
    expect(() => define({ ...minimal, retry })).toThrow(refusal(message))
  })

  test.each([
    ['initialDelay', { initialDelay: 'soon' }],
    ['maxDelay', { maxDelay: 'soon' }],
    ['delays', { type: 'list', delays: ['1s', 'soon'] }],
  ])('a retry.backoff.%s that is not a duration', (setting, backoff) => {
    expect(() => define({ ...minimal, retry: { backoff } })).toThrow(
      refusal(`retry.backoff.${setting} of email.welcome`, 'invalid_duration'),
    )
  })
})

describe('the input', () => {
  const inputOf = (input: z.ZodType) => defineTask({ ...minimal, input }).input

  test('rejects unknown fields, so that a misspelt one is noticed', () => {
    expect(inputOf(z.object({ n: z.int() })).safeParse({ n: 1, m: 2 }).success).toBe(false)
    expect(inputOf(z.object({ n: z.int() })).safeParse({ n: 1 }).success).toBe(true)
  })

  test('accepts unknown fields if it is loose', () => {
    expect(inputOf(z.looseObject({ n: z.int() })).safeParse({ n: 1, m: 2 })).toMatchObject({ data: { n: 1, m: 2 } })
    expect(inputOf(z.object({}).catchall(z.int())).safeParse({ m: 'x' }).success).toBe(false)
  })

  test('keeps its refinements and its description', () => {
    const input = inputOf(
      z
        .object({ n: z.int() })
        .refine(({ n }) => n > 1, 'too small')
        .describe('a number'),
    )
    expect(input.safeParse({ n: 1 }).success).toBe(false)
    expect(input.description).toBe('a number')
    const named = z.object({ n: z.int() }).meta({ id: 'ContractTestNamed', examples: [{ n: 1 }] })
    expect(inputOf(named).meta()).toEqual({ examples: [{ n: 1 }] })
  })

  test('need not be an object', () => {
    expect(inputOf(z.array(z.int())).safeParse([1]).success).toBe(true)
  })
})

test('types follow from the schemas, before and after defaults and transforms', () => {
  const task = defineTask({
    ...minimal,
    name: 'a.b',
    input: z.object({ at: z.string().transform((text) => new Date(text)), n: z.int().default(1) }),
    output: z.object({ size: z.int().default(0) }),
  })
  expectTypeOf(task.name).toEqualTypeOf<'a.b'>()
  expectTypeOf<InputOf<typeof task>>().toEqualTypeOf<{ at: string; n?: number | undefined }>()
  expectTypeOf<ParsedInputOf<typeof task>>().toEqualTypeOf<{ at: Date; n: number }>()
  expectTypeOf<ReturnOf<typeof task>>().toEqualTypeOf<{ size?: number | undefined }>()
  expectTypeOf<OutputOf<typeof task>>().toEqualTypeOf<{ size: number }>()
  expectTypeOf(task).toExtend<TaskDefinition>()
})

test('the compiler rejects what defineTask rejects', () => {
  // @ts-expect-error: a short task is not timed.
  expect(() => defineTask({ ...minimal, kind: 'short', timeout: '1s' })).toThrow()
  // @ts-expect-error: a duration has a unit.
  expect(() => defineTask({ ...minimal, timeout: '1' })).toThrow()
  // @ts-expect-error: base is not a setting.
  expect(() => defineTask({ ...minimal, retry: { base: 'none' } })).toThrow()
})
