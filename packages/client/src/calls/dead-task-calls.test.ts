// Tests the client's calls that retry and delete dead tasks, against an HTTP server that records its requests.
import { expect, test } from 'vitest'
import { api, problem } from '../server.fixture.ts'

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

test('deadTasks requests each page of a search, even after an empty one', async () => {
  const { client, seen } = await api([
    [200, { tasks: [], next: 'c1' }],
    [200, { tasks: [] }],
  ])
  const found: unknown[] = []
  for await (const task of client.deadTasks({ queue: 'cpu', code: 'gone', text: 'a b', pageSize: 10 })) found.push(task)
  expect(found).toEqual([])
  expect(seen.map(({ url }) => url)).toEqual([
    '/v1/dead-tasks?queue=cpu&code=gone&text=a+b&limit=10',
    '/v1/dead-tasks?queue=cpu&code=gone&text=a+b&limit=10&cursor=c1',
  ])
})

test('countDead returns the counts of all queues or of one', async () => {
  const at = '2026-01-01T00:00:00.000Z'
  const kind = { state: 'DONE_ERROR', code: 'gone', message: 'no customer #', count: 3 }
  const count = { queue: 'cpu', fingerprint: '0123456789abcdef', ...kind, oldestAt: at, newestAt: at, newestId: ID }
  const { client, seen } = await api([[200, { fingerprints: [count] }]])
  expect(await client.countDead()).toEqual([count])
  expect(await client.countDead({ queue: 'cpu' })).toEqual([count])
  expect(seen.map(({ url }) => url)).toEqual(['/v1/dead-tasks/fingerprints', '/v1/dead-tasks/fingerprints?queue=cpu'])
})

const REQUEST = {
  ...{
    id: 'cpu-1',
    action: 'retry',
    queue: 'cpu',
    code: 'gone',
    rate: 500,
    by: 'key 1',
    status: 'pending',
    matching: 7,
    exact: true,
  },
  ...{ changed: 0, requestedAt: '2026-01-01T00:00:00.000Z', links: { self: '/v1/dead-tasks/requests/cpu-1' } },
}

test('retryDead, deleteDead and deadTaskRequest send the filter and report the progress', async () => {
  const { client, seen } = await api([
    [202, REQUEST],
    [202, { ...REQUEST, action: 'delete' }],
    [200, { ...REQUEST, status: 'done', changed: 7 }],
  ])
  expect(await client.retryDead({ queue: 'cpu', code: 'gone', rate: 2_000, by: 'ann' })).toEqual(REQUEST)
  expect(await client.deleteDead({ queue: 'cpu' })).toMatchObject({ action: 'delete' })
  expect(await client.deadTaskRequest('cpu-1')).toMatchObject({ status: 'done', changed: 7 })
  expect(seen.map(({ method, url, body }) => [`${method} ${url}`, body])).toEqual([
    ['POST /v1/dead-tasks/retry', { queue: 'cpu', code: 'gone', rate: 2_000, by: 'ann' }],
    ['POST /v1/dead-tasks/delete', { queue: 'cpu' }],
    ['GET /v1/dead-tasks/requests/cpu-1', undefined],
  ])
})

test('deadTaskRequests lists the requests of all queues or of one', async () => {
  const { client, seen } = await api([
    [200, { requests: [REQUEST] }],
    [200, { requests: [] }],
  ])
  expect(await client.deadTaskRequests()).toEqual([REQUEST])
  expect(await client.deadTaskRequests({ queue: 'cpu', limit: 5 })).toEqual([])
  expect(seen.map(({ url }) => url)).toEqual(['/v1/dead-tasks/requests', '/v1/dead-tasks/requests?queue=cpu&limit=5'])
})

test('stopDeadRequest repeats a lost request, and returns the final progress', async () => {
  const stopped = { ...REQUEST, status: 'stopped', changed: 3, stoppedBy: 'ann (key 1)' }
  const { client, seen } = await api(['break', [200, stopped]])
  expect(await client.stopDeadRequest('cpu-1', { by: 'ann' })).toEqual(stopped)
  expect(seen.map(({ method, url, body }) => [`${method} ${url}`, body])).toEqual(
    Array(2).fill(['POST /v1/dead-tasks/requests/cpu-1/stop', { by: 'ann' }]),
  )
})

test('a request by filter whose response is lost is not repeated, and a preview is', async () => {
  const lost = await api(['break', [202, REQUEST]])
  await expect(lost.client.retryDead({ queue: 'cpu' })).rejects.toMatchObject({ outcome: 'unknown' })
  expect(lost.seen).toHaveLength(1)
  const preview = { queue: 'cpu', matching: 7, exact: true }
  const { client, seen } = await api(['break', [200, preview]])
  expect(await client.previewDead({ queue: 'cpu' })).toEqual(preview)
  expect(seen.map(({ url }) => url)).toEqual(Array(2).fill('/v1/dead-tasks/retry?dryRun=true'))
})
