// Tests how the client enqueues many tasks at once, against a server whose responses each test defines.
import { defineTask } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { expect, test } from 'vitest'
import { ProblemError } from './index.ts'
import { api, problem } from './server.fixture.ts'

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

test('enqueueBulk sends a request again with the same idempotency key if the response is lost', async () => {
  const { client, seen } = await api(['break', [200, { failed: 0, results: [STORED] }]])
  expect(await client.enqueueBulk(count, [{ fencingToken: 1 }])).toEqual([STORED])
  const [first, second] = seen.map(({ headers }) => headers['idempotency-key'])
  expect(first).toMatch(/^".+";life=600$/)
  expect(second).toBe(first)
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
