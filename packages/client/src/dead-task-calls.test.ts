// Tests the client's calls that retry and delete dead tasks, against an HTTP server that records its requests.
import { expect, test } from 'vitest'
import { api, problem } from './server.fixture.ts'

const ID = 'cpu-01jd3v7n8q0000000000000000'
const RETRIED = { id: ID, status: 'waiting', links: { self: `/v1/tasks/${ID}`, cancel: `/v1/tasks/${ID}/cancel` } }

test('retryTask repeats a lost request with the same id, so that the task is retried once', async () => {
  const { client, seen } = await api(['break', [200, RETRIED]])
  expect(await client.retryTask(ID, { by: 'ann', input: { n: 1 } })).toEqual(RETRIED)
  const [first, second] = seen
  expect(first).toMatchObject({
    method: 'POST',
    url: `/v1/tasks/${ID}/retry`,
    body: { id: expect.stringMatching(/^[0-9a-f]{32}$/), by: 'ann', input: { n: 1 } },
  })
  expect(second?.body).toEqual(first?.body)
})

test('retryTask takes an id, and rejects if the task is not dead', async () => {
  const { client, seen } = await api([problem('task_not_dead', 409)])
  await expect(client.retryTask(ID, { id: 'mine' })).rejects.toMatchObject({
    code: 'task_not_dead',
    outcome: 'refused',
  })
  expect(seen.map(({ body }) => body)).toEqual([{ id: 'mine' }])
})

test('deleteTask names the requester in the query', async () => {
  const { client, seen } = await api([[200, { id: ID }]])
  expect(await client.deleteTask(ID, { by: 'ann b' })).toEqual({ id: ID })
  expect(await client.deleteTask(ID)).toEqual({ id: ID })
  expect(seen.map(({ method, url }) => [method, url])).toEqual([
    ['DELETE', `/v1/tasks/${ID}?by=ann+b`],
    ['DELETE', `/v1/tasks/${ID}`],
  ])
})
