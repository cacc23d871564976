// Tests retrying and deleting dead tasks by filter over HTTP.
import type { DeadTaskRequestPage } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { KEY_NAME, NOW, problemIn, testApi } from '../../api.fixture.ts'

const AT = new Date(NOW).toISOString()

describe.each(['retry', 'delete'] as const)('a request to %s dead tasks by filter', (action) => {
  const url = `/v1/dead-tasks/${action}`
  const filter = { queue: 'cpu', task: 'math.square', code: 'gone', tag: 'batch:7', endedUntil: AT }

  test('is stored with its filter and the number of matching tasks, and is audited once', async () => {
    const { ask, get, broker, lines } = await testApi()
    const response = await ask({ method: 'POST', url, payload: { ...filter, rate: 2_000, by: 'ann' } })
    const by = `ann (${KEY_NAME})`
    const view = response.json()
    expect([response.statusCode, response.headers['location']]).toEqual([202, view.links.self])
    expect(view).toMatchObject({
      action,
      ...filter,
      rate: 2_000,
      by,
      status: 'pending',
      matching: 7,
      exact: true,
      changed: 0,
    })
    expect(broker.deadRequests).toMatchObject([
      {
        request: {
          action,
          rate: 2_000,
          by,
          filter: { ...filter, endedUntil: NOW },
          counted: { matching: 7, exact: true },
        },
      },
    ])
    const audited = lines.filter(({ message }) => message === 'dead tasks: request accepted')
    const requestId = response.headers['x-request-id']
    expect(audited.map(({ fields }) => fields)).toEqual([
      { action, queue: 'cpu', filter, matching: 7, by, requestId, deadTaskRequest: view.id },
    ])
    expect((await get(view.links.self)).json()).toEqual(view)
  })

  test('changes nothing and is not audited if it is a dry run', async () => {
    const { ask, broker, lines } = await testApi()
    const response = await ask({ method: 'POST', url: `${url}?dryRun=true`, payload: filter })
    expect([response.statusCode, response.json()]).toEqual([200, { ...filter, matching: 7, exact: true }])
    expect(broker.deadRequests).toEqual([])
    expect(lines.filter(({ message }) => message === 'dead tasks: request accepted')).toEqual([])
  })

  test('has a rate of 500 tasks per second by default, and selects all dead tasks of the queue without a filter', async () => {
    const { ask, broker } = await testApi()
    await ask({ method: 'POST', url, payload: { queue: 'cpu' } })
    expect(broker.deadRequests).toMatchObject([{ request: { rate: 500, filter: { queue: 'cpu' } } }])
  })

  test.each([
    [{}, 400],
    [{ queue: 'nope' }, 404],
    [{ queue: 'cpu', rate: 0 }, 400],
    [{ queue: 'cpu', rate: 10_001 }, 400],
    [{ queue: 'cpu', status: 'cancelled' }, 400],
  ])('with the body %j is a %i', async (payload, status) => {
    const { ask, broker } = await testApi()
    expect(problemIn(await ask({ method: 'POST', url, payload })).status).toBe(status)
    expect(broker.deadRequests).toEqual([])
  })
})

describe('a request to stop', () => {
  const stop = (id: string) => ({ method: 'POST', url: `/v1/dead-tasks/requests/${id}/stop` }) as const

  test('stops the retry, shows what was done, and is audited', async () => {
    const { ask, get, broker, lines } = await testApi()
    const filter = { queue: 'cpu', code: 'gone', endedUntil: AT }
    const { id } = (await ask({ method: 'POST', url: '/v1/dead-tasks/retry', payload: filter })).json()
    const response = await ask({ ...stop(id), payload: { by: 'bob' } })
    const by = `bob (${KEY_NAME})`
    expect([response.statusCode, response.json()]).toMatchObject([
      200,
      { id, status: 'stopped', stoppedBy: by, changed: 0 },
    ])
    expect((await get(`/v1/dead-tasks/requests/${id}`)).json()).toEqual(response.json())
    expect(broker.deadRequests).toMatchObject([{ stoppedBy: by }])
    const requestId = response.headers['x-request-id']
    expect(lines.filter(({ message }) => message === 'dead tasks: request stopped')).toMatchObject([
      {
        fields: { action: 'retry', queue: 'cpu', filter, matching: 7, changed: 0, by, requestId, deadTaskRequest: id },
      },
    ])
  })

  test('that comes too late changes nothing and is not audited', async () => {
    const { ask, broker, lines } = await testApi()
    const { id } = (await ask({ method: 'POST', url: '/v1/dead-tasks/delete', payload: { queue: 'cpu' } })).json()
    broker.deadRequests.push(...broker.deadRequests.splice(0).map((each) => ({ ...each, changed: 7, doneAt: NOW })))
    expect((await ask(stop(id))).json()).toMatchObject({ status: 'done', changed: 7 })
    expect(lines.filter(({ message }) => message === 'dead tasks: request stopped')).toEqual([])
  })

  test('for an unknown request is a 404, and with an unknown field a 400', async () => {
    const { ask } = await testApi()
    expect(problemIn(await ask(stop('cpu-1'))).code).toBe('dead_task_request_not_found')
    expect(problemIn(await ask({ ...stop('cpu-1'), payload: { name: 'ann' } })).status).toBe(400)
  })
})

test('the progress of an unknown request is a 404', async () => {
  const { get } = await testApi()
  expect(problemIn(await get('/v1/dead-tasks/requests/cpu-1'))).toMatchObject({
    status: 404,
    code: 'dead_task_request_not_found',
  })
})

describe('the requests', () => {
  const request = (queue: string, at: number) => ({
    ...{ id: `${queue}-${at}`, action: 'retry' as const, filter: { queue, code: 'gone' }, rate: 500, by: 'ann', at },
    counted: { matching: 3, exact: true },
  })

  test('of all queues are listed, newest first, with their progress', async () => {
    const { get, broker } = await testApi()
    broker.deadRequests.push(
      { request: request('cpu', NOW), changed: 3, doneAt: NOW + 1_000 },
      { request: request('mail', NOW + 1), changed: 0, doneAt: undefined },
      { request: request('cpu', NOW + 2), changed: 1, doneAt: undefined },
    )
    const list = async (url: string) => (await get(url)).json<DeadTaskRequestPage>().requests
    expect((await list('/v1/dead-tasks/requests')).map(({ id }) => id)).toEqual([
      `cpu-${NOW + 2}`,
      `mail-${NOW + 1}`,
      `cpu-${NOW}`,
    ])
    const [first] = await list('/v1/dead-tasks/requests?queue=cpu&limit=1')
    expect(first).toMatchObject({ id: `cpu-${NOW + 2}`, by: 'ann', code: 'gone', matching: 3, changed: 1 })
    expect(await list('/v1/dead-tasks/requests?queue=cpu&limit=2')).toMatchObject([{}, { status: 'done', changed: 3 }])
  })

  test.each([
    ['queue=nope', 404],
    ['limit=0', 400],
    ['limit=201', 400],
  ])('with %s are a %i', async (query, status) => {
    const { get } = await testApi()
    expect(problemIn(await get(`/v1/dead-tasks/requests?${query}`)).status).toBe(status)
  })
})
