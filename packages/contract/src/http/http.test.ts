// Tests the schemas of requests and answers.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../definition/catalogue.ts'
import { defineTask } from '../definition/task-definition.ts'
import { TASK_STATUSES } from '../task/states.ts'
import {
  acceptedSchema,
  enqueueBodySchema,
  listQuerySchema,
  MAX_WAIT_S,
  PAGE,
  taskPageSchema,
  taskViewSchema,
  waitSchema,
} from './http.ts'

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
  ])('%j is accepted as it stands', (given) => {
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
      'delay: duration is "5": a duration has a unit; did you mean \'5s\'',
    ],
    [{ task: 'math.square', input: { n: 4 }, delay: 'none' }, 'delay: '],
    [{ task: 'math.square', input: { n: 4 }, tags: 'a' }, 'tags: '],
    [{ task: 'math.square', input: { n: 4 }, tags: ['a', ''] }, 'tags.1: a tag is 1 to 64 of'],
    [{ task: 'math.square', input: { n: 4 }, tags: ['a b'] }, 'tags.0: a tag is 1 to 64 of'],
    [{ task: 'math.square', input: { n: 4 }, tags: ['x'.repeat(65)] }, 'tags.0: a tag is 1 to 64 of'],
    [{ task: 'math.square', input: { n: 4 }, tags: [...'1234567890a'] }, 'tags: at most 10 tags'],
    [{ task: 'math.square', input: { n: 4 }, tags: ['a', 'a'] }, 'tags: no tag twice'],
    [{ task: 'math.square', input: { n: 4 }, delay: 5 }, 'delay: '],
    [{ task: 'math.square', input: { n: 4 }, timeout: '0s' }, 'timeout: '],
    [{ task: 'math.square', input: { n: 4 }, meta: labels(17) }, 'meta: at most 16 entries'],
    [{ task: 'math.square', input: { n: 4 }, meta: labels(1, 65) }, 'meta.'],
    [{ task: 'math.square', input: { n: 4 }, meta: labels(1, 1, 257) }, 'meta.0: '],
    [{ task: 'math.square', input: { n: 4 }, meta: { a: 1 } }, 'meta.a: '],
  ])('%j is refused where it is wrong', (given, where) => {
    expect(paths(given)).toEqual([expect.stringContaining(where)])
    expect(paths(given)?.[0]?.startsWith(where)).toBe(true)
  })

  test('shows every task by its name in JSON Schema, as OpenAPI needs it', () => {
    const text = JSON.stringify(z.toJSONSchema(body, { io: 'input' }))
    for (const part of ['"Enqueue math.square"', '"Enqueue math.list"', '"n x n."']) expect(text).toContain(part)
  })
})

describe('the query of a listing', () => {
  test('has a page size of its own unless it says one, in text as it comes', () => {
    expect(listQuerySchema.parse({ queue: 'cpu', status: 'dead' })).toEqual({
      queue: 'cpu',
      status: 'dead',
      limit: PAGE.default,
    })
    expect(listQuerySchema.parse({ queue: 'cpu', status: 'dead', limit: '200', cursor: 'c' })).toMatchObject({
      limit: 200,
    })
  })

  test.each([
    {},
    { queue: 'cpu' },
    { status: 'dead' },
    { queue: 'cpu', status: 'failed' },
    ...['0', '201', '1.5', 'many', '', '-1'].map((limit) => ({ queue: 'cpu', status: 'dead', limit })),
    { queue: 'cpu', status: 'dead', cursor: 'c'.repeat(257) },
    { queue: 'cpu', status: 'dead', page: '2' },
  ])('%j is refused', (query) => {
    expect(listQuerySchema.safeParse(query).success).toBe(false)
  })
})

test('a wait is from 0 to 30 seconds', () => {
  expect(['0', '0.5', '30'].map((text) => waitSchema.parse(text))).toEqual([0, 0.5, MAX_WAIT_S])
  for (const text of ['31', '-1', 'long', 'Infinity']) expect(waitSchema.safeParse(text).success).toBe(false)
})

describe('what is answered', () => {
  const links = { self: '/v1/tasks/x', wait: '/v1/tasks/x?wait=30', queue: '/v1/tasks?queue=cpu' }
  const time = '2026-01-01T00:00:00.000Z'
  const end = {
    fencingToken: 1,
    attempt: 1,
    counted: true,
    state: 'DONE_SUCCESS',
    worker: 'host:1',
    startedAt: time,
    endedAt: time,
  }
  const view = {
    ...{
      id: 'x',
      task: 'math.square',
      version: 1,
      queue: 'cpu',
      status: 'completed',
      fencingToken: 1,
      attemptsMade: 1,
      maxAttempts: 5,
    },
    ...{ input: { n: 4 }, output: 16, meta: {}, tags: ['a'], enqueuedAt: time, attempts: [end], links },
  }

  test('is a task with its history', () => {
    expect(taskViewSchema.parse(view)).toEqual(view)
    expect(taskPageSchema.parse({ tasks: [view], next: 'c' })).toEqual({ tasks: [view], next: 'c' })
    for (const status of TASK_STATUSES) expect(taskViewSchema.safeParse({ ...view, status }).success).toBe(true)
    for (const state of ['NEW', 'IN_PROCESS', 'TERMINATED_TIMEOUT']) {
      expect(taskViewSchema.safeParse({ ...view, state }).success).toBe(true)
    }
  })

  test.each([
    { status: 'failed' },
    { state: 'DONE' },
    { enqueuedAt: 1 },
    { attempts: [{ ...end, state: 'IN_PROCESS' }] },
    { attempts: [{ ...end, fencingToken: -1 }] },
    { attempts: [{ ...end, startedAt: 1 }] },
  ])('is no task with %j', (wrong) => {
    expect(taskViewSchema.safeParse({ ...view, ...wrong }).success).toBe(false)
  })

  test('is an id, a status and links when a task is accepted', () => {
    expect(acceptedSchema.parse({ id: 'x', status: 'scheduled', links })).toEqual({
      id: 'x',
      status: 'scheduled',
      links,
    })
    expect(acceptedSchema.safeParse({ id: 'x', status: 'new', links }).success).toBe(false)
  })
})
