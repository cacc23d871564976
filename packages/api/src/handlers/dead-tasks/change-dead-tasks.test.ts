// Tests retrying and deleting dead tasks by filter over HTTP.
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

test('the progress of an unknown request is a 404', async () => {
  const { get } = await testApi()
  expect(problemIn(await get('/v1/dead-tasks/requests/cpu-1'))).toMatchObject({
    status: 404,
    code: 'dead_task_request_not_found',
  })
})
