// Tests how the client enqueues many tasks at once, against a server whose responses each test defines.
import { defineTask } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { expect, test } from 'vitest'
import { ProblemError } from '../index.ts'
import { api, problem } from '../server.fixture.ts'

/** The schemas are taken from the contract, because the client does not depend on zod. */
const count = defineTask({ name: 'task.count', queue: 'cpu', input: taskViewSchema.pick({ fencingToken: true }) })
const STORED = { id: 'cpu-01jd3v7n8q0000000000000000', action: 'created', status: 'waiting' }

test('enqueueBulk sends one task for each input, and returns the result of each', async () => {
  const error = { type: '/problems/queue_draining', title: 'T', status: 503, code: 'queue_draining', detail: 'later' }
  const { client, seen } = await api([[200, { failed: 1, results: [STORED, { error }] }]])
  const results = await client.enqueueBulk(count, [{ fencingToken: 1 }, { fencingToken: 2 }], { tags: ['x'] })
  expect(seen).toMatchObject([{ method: 'POST', url: '/v1/tasks/bulk' }])
  expect(seen[0]?.body).toEqual({
    tasks: [1, 2].map((n) => ({ task: 'task.count', input: { fencingToken: n }, tags: ['x'] })),
  })
  expect(results).toEqual([STORED, { error: expect.any(ProblemError) }])
  expect(results[1]).toMatchObject({ error: { code: 'queue_draining', outcome: 'refused', detail: 'later' } })
})

test('enqueueBulk says how long to wait if the rate of a queue has refused a task', async () => {
  const error = { ...problemIn('enqueue_rate_exceeded', 429).error, retryAfter: 4 }
  const { client, seen } = await api([[200, { failed: 1, results: [STORED, { error }] }]])
  const [, second] = await client.enqueueBulk(count, inputs)
  expect(second).toMatchObject({ error: { code: 'enqueue_rate_exceeded', outcome: 'refused', retryAfterMs: 4_000 } })
  expect(seen).toHaveLength(1)
})

test('enqueueBulk sends a request again with the same idempotency key if the response is lost', async () => {
  const { client, seen } = await api(['break', [200, { failed: 0, results: [{ ...STORED, replayed: true }] }]])
  expect(await client.enqueueBulk(count, [{ fencingToken: 1 }])).toEqual([STORED])
  const [first, second] = seen.map(({ headers }) => headers['idempotency-key'])
  expect(first).toMatch(/^".+";life=600$/)
  expect(second).toBe(first)
})

const problemIn = (code: string, status: number) => ({ error: { type: `/problems/${code}`, title: 'T', status, code } })
const inputs = [{ fencingToken: 1 }, { fencingToken: 2 }]

test('enqueueBulk sends a request again if a task failed for a temporary reason, and keeps what is stored', async () => {
  const { client, seen } = await api([
    [200, { failed: 1, results: [STORED, problemIn('redis_unavailable', 503)] }],
    [
      200,
      {
        failed: 0,
        results: [
          { ...STORED, replayed: true },
          { ...STORED, id: 'cpu-2' },
        ],
      },
    ],
  ])
  expect(await client.enqueueBulk(count, inputs)).toEqual([STORED, { ...STORED, id: 'cpu-2' }])
  const [first, second] = seen.map(({ headers }) => headers['idempotency-key'])
  expect(second).toBe(first)
})

test('enqueueBulk returns the results of its last try if a task still fails, whose outcome is that of all tries', async () => {
  const { client, seen } = await api(
    [
      [200, { failed: 2, results: [problemIn('redis_unavailable', 503), problemIn('redis_full', 503)] }],
      [200, { failed: 2, results: [problemIn('redis_full', 503), problemIn('redis_full', 503)] }],
    ],
    { retryFor: '300ms' },
  )
  const full = { code: 'redis_full', status: 503 }
  expect(await client.enqueueBulk(count, inputs)).toMatchObject([
    { error: { ...full, outcome: 'unknown' } },
    { error: { ...full, outcome: 'refused' } },
  ])
  expect(seen.length).toBeGreaterThan(1)
})

test('enqueueBulk says that a task may be stored if the response of an earlier try is lost', async () => {
  const { client } = await api(['break', [200, { failed: 1, results: [problemIn('queue_draining', 503), STORED] }]])
  const [first, second] = await client.enqueueBulk(count, inputs)
  expect(first).toMatchObject({ error: { code: 'queue_draining', outcome: 'unknown' } })
  expect(second).toEqual(STORED)
})

test.each([
  {},
  null,
  { failed: 0, results: {} },
  { failed: 0, results: [STORED] },
  { failed: 0, results: [STORED, STORED, STORED] },
  { failed: 0, results: [STORED, null] },
  { failed: 1, results: [STORED, { error: 'no' }] },
])('enqueueBulk rejects the response %j, which does not have a result for each of its two tasks', async (response) => {
  const { client, seen } = await api([[200, response]])
  await expect(client.enqueueBulk(count, inputs)).rejects.toMatchObject({
    name: 'ProblemError',
    code: 'unexpected_response',
    status: 200,
    outcome: 'unknown',
  })
  expect(seen).toHaveLength(1)
})

test('enqueueBulkNamed sends tasks as they are', async () => {
  const { client, seen } = await api([[200, { failed: 0, results: [STORED, STORED] }]])
  const tasks = [
    { task: 'a.b', input: 1, delay: '1h' },
    { task: 'c.d', input: {} },
  ] as const
  expect(await client.enqueueBulkNamed(tasks, { idempotencyKey: 'k' })).toEqual([STORED, STORED])
  expect(seen[0]).toMatchObject({ body: { tasks }, headers: { 'idempotency-key': '"k"' } })
})

test('enqueueBulk rejects if the tasks must be stored together and are not', async () => {
  const { client, seen } = await api([problem('invalid_input', 422, { detail: '/tasks/0/input: wrong' })])
  const call = client.enqueueBulk(count, [{ fencingToken: 1 }], { atomic: true })
  await expect(call).rejects.toMatchObject({ code: 'invalid_input', outcome: 'refused' })
  expect(seen[0]?.body).toEqual({ tasks: [{ task: 'task.count', input: { fencingToken: 1 } }], atomic: true })
})

test('enqueueBulk of no inputs sends nothing', async () => {
  const { client, seen } = await api([])
  expect(await client.enqueueBulk(count, [])).toEqual([])
  expect(seen).toEqual([])
})
