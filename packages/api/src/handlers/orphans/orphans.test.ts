// Tests finding and deleting orphaned keys over HTTP.
import type { Orphan } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { problemIn, testApi } from '../../api.fixture.ts'

const LOCK: Orphan = {
  key: '{n.cpu}:cpu:cpu-1:lock',
  reason: 'no_owner',
  queue: 'cpu',
  kind: '<task>:lock',
  owner: 'task',
  certain: true,
}
const ENTRY: Orphan = { key: '{n.cpu}:cpu:wait', entry: 'cpu-1', reason: 'no_owner', queue: 'cpu', certain: true }
const UNKNOWN: Orphan = { key: '{n}:x', reason: 'unknown_key', certain: false }

test('orphans are returned page by page', async () => {
  const { get, broker } = await testApi()
  broker.orphaned.push(LOCK, UNKNOWN)
  const first = (await get('/v1/orphans')).json()
  expect(first).toEqual({ orphans: [LOCK], examined: 10, next: '1' })
  expect((await get(`/v1/orphans?cursor=${first.next}`)).json()).toEqual({ orphans: [UNKNOWN], examined: 10 })
})

test.each([
  ['?cursor=nonsense', 'invalid_cursor'],
  ['?queue=cpu', 'invalid_request'],
])('a search with %j is refused with %s', async (query, code) => {
  const { get } = await testApi()
  expect(problemIn(await get(`/v1/orphans${query}`))).toMatchObject({ status: 400, code })
})

test('orphans without an owner are deleted, others are kept, and one audit line names what was deleted', async () => {
  const { ask, broker, lines } = await testApi()
  broker.orphaned.push(LOCK, ENTRY, UNKNOWN)
  const refs = [{ key: LOCK.key }, { key: ENTRY.key, entry: 'cpu-1' }, { key: UNKNOWN.key }]
  const payload = { orphans: refs, by: 'ann' }
  const response = await ask({ method: 'POST', url: '/v1/orphans/delete', payload })
  expect(response.json()).toEqual({ deleted: refs.slice(0, 2), kept: refs.slice(2) })
  const audited = lines.filter(({ message }) => message === 'orphaned keys: deleted')
  const by = expect.stringMatching(/^ann \(key /)
  expect(audited.map(({ fields }) => fields)).toEqual([
    { deleted: refs.slice(0, 2), kept: 1, by, requestId: expect.any(String) },
  ])
})

test.each([[{}], [{ orphans: [] }], [{ orphans: [{ entry: 'x' }] }], [{ orphans: Array(201).fill({ key: 'k' }) }]])(
  'the body %j is refused',
  async (payload) => {
    const { ask } = await testApi()
    expect(problemIn(await ask({ method: 'POST', url: '/v1/orphans/delete', payload }))).toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
  },
)

test.each(['GET /v1/orphans', 'POST /v1/orphans/delete'])('%s requires an API key', async (route) => {
  const { app } = await testApi()
  const [method = '', url = ''] = route.split(' ')
  const response = await app.inject({ method: method as 'GET', url })
  expect(response.statusCode).toBe(401)
})
