// Tests searching dead tasks and counting them by fingerprint over HTTP.
import { expect, test } from 'vitest'
import { anId, NOW, problemIn, testApi } from '../../api.fixture.ts'

const AT = new Date(NOW).toISOString()

test('a search passes the filter on with its times in ms, and returns one page', async () => {
  const { get, broker } = await testApi()
  broker.put({ id: anId, status: 'dead', fingerprint: '0123456789abcdef' })
  const query = new URLSearchParams({
    ...{ queue: 'cpu', task: 'math.square', state: 'DONE_ERROR', code: 'gone', tag: 'batch:7', text: 'customer' },
    ...{ fingerprint: '0123456789abcdef', endedFrom: AT, endedUntil: AT, limit: '7', cursor: 'abc' },
  })
  const response = await get(`/v1/dead-tasks?${query}`)
  expect(response.json()).toMatchObject({ tasks: [{ id: anId, fingerprint: '0123456789abcdef' }], next: 'more' })
  expect(broker.searches).toEqual([
    {
      ...{ queue: 'cpu', task: 'math.square', state: 'DONE_ERROR', code: 'gone', tag: 'batch:7', text: 'customer' },
      ...{ fingerprint: '0123456789abcdef', endedFrom: NOW, endedUntil: NOW, limit: 7, cursor: 'abc' },
    },
  ])
})

test.each([
  ['', 400],
  ['?queue=nope', 404],
  ['?queue=cpu&state=NEW', 400],
  ['?queue=cpu&fingerprint=xyz', 400],
  ['?queue=cpu&endedFrom=yesterday', 400],
  ['?queue=cpu&limit=201', 400],
  ['?queue=cpu&colour=red', 400],
])('a search with %j is a %i', async (query, status) => {
  const { get } = await testApi()
  expect(problemIn(await get(`/v1/dead-tasks${query}`)).status).toBe(status)
})

test('the counts of all queues are listed together, the largest first, or only those of one queue', async () => {
  const { get, broker } = await testApi()
  const kind = (fingerprint: string, count: number) => ({
    ...{ fingerprint, state: 'DONE_ERROR', code: 'gone', message: 'no customer #', count },
    ...{ oldestAt: NOW, newestAt: NOW, newestId: anId },
  })
  broker.fingerprints.set('cpu', [kind('a', 2)])
  broker.fingerprints.set('mail', [kind('b', 3), kind('c', 1)])
  const all = (await get('/v1/dead-tasks/fingerprints')).json()
  expect(all.fingerprints).toMatchObject([
    { queue: 'mail', fingerprint: 'b', count: 3 },
    { queue: 'cpu', fingerprint: 'a', count: 2 },
    { queue: 'mail', fingerprint: 'c', count: 1 },
  ])
  expect((await get('/v1/dead-tasks/fingerprints?queue=cpu')).json()).toEqual({
    fingerprints: [{ ...kind('a', 2), queue: 'cpu', oldestAt: AT, newestAt: AT }],
  })
  expect(problemIn(await get('/v1/dead-tasks/fingerprints?queue=nope')).status).toBe(404)
})
