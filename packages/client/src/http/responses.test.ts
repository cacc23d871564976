// Tests that the checks of responses agree with the schemas of the contract, for responses with random changes.
import {
  acceptedSchema,
  bulkResponseSchema,
  cancellationSchema,
  cancelledSchema,
  cancelPreviewSchema,
  commandViewSchema,
  droppedSchema,
  taskViewSchema,
} from '@bullpen/contract/internal'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { problemIn } from './problem-response.ts'
import {
  isBulkResponseFor,
  isCancellation,
  isCancelled,
  isCancelPreview,
  isCommand,
  isEnqueueResponse,
  isTask,
} from './responses.ts'

const AT = '2026-01-01T00:00:00.000Z'
const ID = 'cpu-01jd3v7n8q0000000000000000'
const links = { self: `/v1/tasks/${ID}`, cancel: `/v1/tasks/${ID}/cancel` }
const stored = { id: ID, action: 'created', status: 'waiting', expectedStartAt: AT }
const attempt = {
  ...{ attempt: 1, fencingToken: 1, counted: true, outcome: 'failed', state: 'DONE_ERROR' },
  ...{ error: { code: 'c', message: 'm' }, by: 'ann', worker: 'w', slot: 1, startedAt: AT, endedAt: AT },
}
const task = {
  ...{ id: ID, task: 'math.square', version: 1, queue: 'cpu', status: 'completed', attemptsMade: 1, maxAttempts: 5 },
  ...{ priority: 0, fencingToken: 1, input: { n: 4 }, output: 16, error: { code: 'c', message: 'm' } },
  ...{ progress: { fraction: 0.5, note: 'half' }, steps: ['a'], meta: { a: 'b' }, tags: ['x'] },
  ...{ correlationId: 'r', concurrencyKey: 'k', enqueuedAt: AT, dueAt: AT, startedAt: AT, endedAt: AT },
  ...{ attempts: [attempt], links },
}
const problem = { type: '/problems/queue_full', title: 'T', status: 429, code: 'queue_full', detail: 'd', taskId: ID }
const bulk = {
  failed: 1,
  results: [{ ...stored, replayed: true }, { error: { ...problem, retryAfter: 3 } }, { action: 'dropped' }],
}
const filter = { queue: 'cpu', task: 'math.square', tag: 'x', enqueuedUntil: AT }
const cancellation = {
  ...{ id: 'cpu-1', ...filter, by: 'ann', status: 'done', ended: 2, requestedAt: AT, doneAt: AT },
  links: { self: '/v1/cancels/cpu-1' },
}
const command = {
  ...{ id: 'c-1', spec: { action: 'pause', queue: 'cpu' }, by: 'ann', at: AT, outcome: 'done' },
  responses: [{ worker: 'w', outcome: 'done', detail: 'd', at: AT }],
}
const enqueueSchema = acceptedSchema.or(droppedSchema)

/** One change: a field at a random place is deleted, or gets a value that is not a text. */
const change = fc.record({
  steps: fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
  to: fc.constantFrom(undefined, null, 0, 1.5, -1, true, [], {}, [null], { a: 1 }),
})

function changed(value: unknown, steps: readonly number[], to: unknown): unknown {
  const [step, ...rest] = steps
  if (typeof value !== 'object' || value === null || step === undefined) return to
  const keys = Object.keys(value)
  const key = keys[step % Math.max(1, keys.length)]
  if (key === undefined) return to
  const next = changed((value as Record<string, unknown>)[key], rest, to)
  const entries = Object.entries(value).map(([name, each]) => [name, name === key ? next : each] as const)
  if (Array.isArray(value)) return entries.map(([, each]) => each)
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined))
}

test.each([
  ['an accepted task', { ...stored, links }, isEnqueueResponse, enqueueSchema],
  ['a dropped task', { action: 'dropped' }, isEnqueueResponse, enqueueSchema],
  ['a bulk response', bulk, isBulkResponseFor(3), bulkResponseSchema],
  // JSON has no field for an input that the API cannot decode.
  ['a task', task, isTask, taskViewSchema.partial({ input: true })],
  ['a cancelled task', { id: ID, outcome: 'cancelling', status: 'active', links }, isCancelled, cancelledSchema],
  ['a cancellation', cancellation, isCancellation, cancellationSchema],
  ['a preview', { ...filter, matching: 3, exact: true }, isCancelPreview, cancelPreviewSchema],
])('%s is accepted if and only if the contract accepts it', (_, response, check, schema) => {
  expect(check(response)).toBe(true)
  fc.assert(
    fc.property(change, ({ steps, to }) => {
      const given = changed(response, steps, to)
      // The code and the type of a task's problem may be those of a newer API.
      const text = JSON.stringify(given)
      fc.pre(!('results' in response) || (text.includes('"queue_full"') && text.includes('"/problems/queue_full"')))
      expect([check(given), given]).toEqual([schema.safeParse(given).success, given])
    }),
    { numRuns: 500 },
  )
})

test('a command is accepted, and a command without responses is not', () => {
  expect(commandViewSchema.safeParse(command).success).toBe(true)
  expect(isCommand(command)).toBe(true)
  expect(isCommand({ ...command, responses: undefined })).toBe(false)
})

test('a text that is not a time is not accepted as one', () => {
  expect(isTask({ ...task, enqueuedAt: 'x' })).toBe(false)
})

test('statuses, states and outcomes that the contract does not have are accepted, because a newer API may send them', () => {
  expect(isTask({ ...task, status: 'new', attempts: [{ ...attempt, outcome: 'new', state: 'NEW_STATE' }] })).toBe(true)
  expect(isBulkResponseFor(1)({ failed: 0, results: [{ ...stored, action: 'new', status: 'new' }] })).toBe(true)
  expect(isCancelled({ id: ID, outcome: 'new', status: 'new', links })).toBe(true)
})

test('a problem with a code that the contract does not have keeps its detail', () => {
  const body = JSON.stringify({
    type: '/problems/new',
    title: 'New',
    status: 409,
    code: 'new',
    detail: 'why',
    taskId: ID,
  })
  expect(problemIn(new Response(null, { status: 409 }), body, 'POST /v1/tasks')).toMatchObject({
    ...{ code: 'new', detail: 'why', taskId: ID, outcome: 'refused' },
  })
})

test('fields that the contract does not have are accepted, because a newer API may send them', () => {
  expect(isTask({ ...task, more: 1 })).toBe(true)
  expect(isEnqueueResponse({ ...stored, links, more: 1 })).toBe(true)
})
