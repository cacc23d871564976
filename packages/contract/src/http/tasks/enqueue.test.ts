// Tests the body of an enqueue and its answer.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../../definition/catalogue.ts'
import { defineTask } from '../../definition/task-definition.ts'
import { acceptedSchema, enqueueBodySchema } from './enqueue.ts'

const square = defineTask({
  name: 'math.square',
  queue: 'cpu',
  summary: 'n x n.',
  input: z.object({ n: z.int() }),
  output: z.int(),
})
const list = defineTask({ name: 'math.list', queue: 'cpu', input: z.array(z.int()), output: z.int() })
const body = enqueueBodySchema(defineCatalogue(square, list))

const paths = (given: unknown) => {
  const { error } = body.safeParse(given)
  return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

describe('the body of an enqueue', () => {
  const labels = (count: number, key = 1, value = 1) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [String(i).padStart(key, 'k'), 'v'.repeat(value)]))

  test.each([
    { task: 'math.square', input: { n: 4 } },
    { task: 'math.list', input: [1, 2] },
    { task: 'math.square', input: { n: 4 }, meta: labels(16, 64, 256), delay: '5s', timeout: 'none' },
    { task: 'math.square', input: { n: 4 }, meta: {}, timeout: '1.5h' },
    { task: 'math.square', input: { n: 4 }, tags: ['A-z0.9_:/@', 'x'.repeat(64), ...'12345678'] },
    {
      task: 'math.square',
      input: { n: 4 },
      runAt: '2030-01-31T09:00:00+02:00',
      priority: 9,
      retry: { maxAttempts: 1 },
    },
    { task: 'math.square', input: { n: 4 }, runAt: '2030-01-31T09:00:00.5Z', concurrencyKey: 'x'.repeat(128) },
    { task: 'math.square', input: { n: 4 }, unique: { key: 'x'.repeat(128) } },
    { task: 'math.square', input: { n: 4 }, unique: { key: ' ', until: 'started', onConflict: 'replace' } },
    { task: 'math.square', input: { n: 4 }, delay: '5s', unique: { key: 'k', until: '1.5h', onConflict: 'extend' } },
  ])('%j is accepted unchanged', (given) => {
    expect(body.parse(given)).toEqual(given)
  })

  test.each([
    [null, ': '],
    [{}, 'task: '],
    [{ task: 'math.cube', input: {} }, 'task: '],
    [{ task: 'math.square' }, 'input: '],
    [{ task: 'math.square', input: { n: '4' } }, 'input.n: '],
    [{ task: 'math.square', input: { n: 4, m: 5 } }, 'input: Unrecognized key: "m"'],
    [{ task: 'math.square', input: [1] }, 'input: '],
    [{ task: 'math.square', input: { n: 4 }, delya: '5s' }, ': Unrecognized key: "delya"'],
    [
      { task: 'math.square', input: { n: 4 }, delay: '5' },
      'delay: duration is "5"; expected a duration with a unit, such as \'5s\'',
    ],
    [{ task: 'math.square', input: { n: 4 }, delay: 'none' }, 'delay: '],
    [{ task: 'math.square', input: { n: 4 }, tags: 'a' }, 'tags: '],
    [{ task: 'math.square', input: { n: 4 }, tags: ['a', ''] }, 'tags.1: expected a tag of 1 to 64 of'],
    [{ task: 'math.square', input: { n: 4 }, tags: ['a b'] }, 'tags.0: expected a tag of 1 to 64 of'],
    [{ task: 'math.square', input: { n: 4 }, tags: ['x'.repeat(65)] }, 'tags.0: expected a tag of 1 to 64 of'],
    [{ task: 'math.square', input: { n: 4 }, tags: [...'1234567890a'] }, 'tags: at most 10 tags'],
    [{ task: 'math.square', input: { n: 4 }, tags: ['a', 'a'] }, 'tags: duplicate tag'],
    [{ task: 'math.square', input: { n: 4 }, delay: 5 }, 'delay: '],
    [{ task: 'math.square', input: { n: 4 }, runAt: '2030-01-31T09:00:00' }, 'runAt: expected a time with an offset'],
    [{ task: 'math.square', input: { n: 4 }, priority: 10 }, 'priority: '],
    [{ task: 'math.square', input: { n: 4 }, priority: 1.5 }, 'priority: '],
    [{ task: 'math.square', input: { n: 4 }, durability: 'all' }, 'durability: '],
    [{ task: 'math.square', input: { n: 4 }, onEnd: [{ task: 'a.b', input: 0, durability: 'primary' }] }, 'onEnd.0: '],
    [{ task: 'math.square', input: { n: 4 }, concurrencyKey: '' }, 'concurrencyKey: '],
    [
      { task: 'math.square', input: { n: 4 }, concurrencyKey: 'acme\x1e' },
      'concurrencyKey: expected text without line breaks, other control characters',
    ],
    [{ task: 'math.square', input: { n: 4 }, retry: { maxAttempts: 0 } }, 'retry.maxAttempts: '],
    [{ task: 'math.square', input: { n: 4 }, retry: 3 }, 'retry: '],
    [{ task: 'math.square', input: { n: 4 }, unique: 'k' }, 'unique: '],
    [{ task: 'math.square', input: { n: 4 }, unique: {} }, 'unique.key: '],
    [{ task: 'math.square', input: { n: 4 }, unique: { key: '' } }, 'unique.key: '],
    [{ task: 'math.square', input: { n: 4 }, unique: { key: 'x'.repeat(129) } }, 'unique.key: '],
    [
      { task: 'math.square', input: { n: 4 }, unique: { key: 'k\ud801' } },
      'unique.key: expected well-formed Unicode text, without unpaired surrogates',
    ],
    [
      { task: 'math.square', input: { n: 4 }, concurrencyKey: '\udc00k' },
      'concurrencyKey: expected well-formed Unicode text, without unpaired surrogates',
    ],
    [
      { task: 'math.square', input: { n: 4 }, unique: { key: 'k', until: 'ended' } },
      "unique.until: expected 'started', 'finished', or a duration",
    ],
    [{ task: 'math.square', input: { n: 4 }, unique: { key: 'k', until: '366d' } }, 'unique.until: expected '],
    [{ task: 'math.square', input: { n: 4 }, unique: { key: 'k', onConflict: 'drop' } }, 'unique.onConflict: '],
    [{ task: 'math.square', input: { n: 4 }, timeout: '0s' }, 'timeout: duration is "0s"; use \'none\' for no limit'],
    [{ task: 'math.square', input: { n: 4 }, timeout: 0 }, "timeout: expected a duration such as '30s', or 'none'"],
    [{ task: 'math.square', input: { n: 4 }, meta: labels(17) }, 'meta: at most 16 entries'],
    [{ task: 'math.square', input: { n: 4 }, meta: labels(1, 65) }, 'meta.'],
    [{ task: 'math.square', input: { n: 4 }, meta: labels(1, 1, 257) }, 'meta.0: '],
    [{ task: 'math.square', input: { n: 4 }, meta: { a: 1 } }, 'meta.a: '],
  ])('%j is refused, naming the wrong field', (given, where) => {
    expect(paths(given)).toEqual([expect.stringContaining(where)])
    expect(paths(given)?.[0]?.startsWith(where)).toBe(true)
  })

  test('names every task in JSON Schema', () => {
    const text = JSON.stringify(z.toJSONSchema(body, { io: 'input' }))
    for (const part of ['"Enqueue math.square"', '"Enqueue math.list"', '"n x n."']) expect(text).toContain(part)
  })
})

test('the answer to an enqueue has an id, an action, a status and links', () => {
  const links = { self: '/v1/tasks/x', cancel: '/v1/tasks/x/cancel' }
  const accepted = { id: 'x', action: 'created', status: 'scheduled', links }
  expect(acceptedSchema.parse(accepted)).toEqual(accepted)
  expect(acceptedSchema.safeParse({ ...accepted, status: 'new' }).success).toBe(false)
  expect(acceptedSchema.safeParse({ ...accepted, action: 'new' }).success).toBe(false)
  const { status: _, ...withoutStatus } = accepted
  expect(acceptedSchema.parse(withoutStatus)).toEqual(withoutStatus)
})
