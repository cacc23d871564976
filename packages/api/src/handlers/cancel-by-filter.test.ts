// Tests cancelling tasks by filter over HTTP.
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, test } from 'vitest'
import { KEY_NAME, NOW, problemIn, testApi } from '../api.fixture.ts'

const url = '/v1/tasks/cancel'

async function cancelApi() {
  const api = await testApi()
  const cancel = (payload: unknown, query = '') =>
    api.ask({ method: 'POST', url: `${url}${query}`, payload: payload as object })
  return { ...api, cancel }
}

describe('a cancel by filter', () => {
  test('covers the tasks that were enqueued until now, and returns a link to its progress', async () => {
    const { ask, broker, cancel } = await cancelApi()
    const answer = await cancel({ queue: 'cpu' })
    expect(answer.statusCode).toBe(202)
    const view = answer.json()
    expect(view).toEqual({
      id: expect.stringMatching(/^cpu-/),
      queue: 'cpu',
      enqueuedUntil: new Date(NOW).toISOString(),
      by: KEY_NAME,
      status: 'pending',
      ended: 0,
      requestedAt: new Date(0).toISOString(),
      links: { self: `/v1/cancels/${view.id}` },
    })
    expect(answer.headers['location']).toBe(view.links.self)
    expect(broker.cancels[0]?.rule).toMatchObject({ queue: 'cpu', before: NOW, reason: 'cancelled', by: KEY_NAME })
    expect((await ask({ url: view.links.self })).json()).toEqual({ ...view, ended: 3 })
  })

  test('accepts a name, a tag, an age and a requester', async () => {
    const { broker, cancel } = await cancelApi()
    const answer = await cancel({ queue: 'cpu', task: 'math.square', tag: 'batch:7', olderThan: '1h', by: 'ann' })
    expect(answer.json()).toMatchObject({ task: 'math.square', tag: 'batch:7', by: `ann (${KEY_NAME})` })
    expect(broker.cancels[0]?.rule).toMatchObject({
      task: 'math.square',
      tag: 'batch:7',
      before: NOW - 3_600_000,
      by: `ann (${KEY_NAME})`,
    })
  })

  test('is shown as done once all of its tasks have ended', async () => {
    const { ask, broker, cancel } = await cancelApi()
    const { id } = (await cancel({ queue: 'cpu' })).json()
    broker.cancels.splice(0, 1, { ...(broker.cancels[0] as (typeof broker.cancels)[0]), doneAt: NOW })
    const shown = await ask({ url: `/v1/cancels/${id}` })
    expect(shown.json()).toMatchObject({ status: 'done', doneAt: new Date(NOW).toISOString() })
  })

  test.each([
    [{ queue: 'gpu' }, 404, 'queue_not_found', 'did you mean cpu?'],
    [{ queue: 'cpu', task: 'math.sqare' }, 422, 'unknown_task', 'math.square'],
    [{ queue: 'mail', task: 'math.square' }, 400, 'invalid_request', "runs in queue 'cpu', not in 'mail'"],
    [{}, 400, 'invalid_request', 'queue: missing; expected a string'],
    [{ queue: 'cpu', tag: 'a b' }, 400, 'invalid_request', 'tag: expected a tag of 1 to 64'],
    [{ queue: 'cpu', olderThan: 'long' }, 400, 'invalid_request', 'olderThan'],
    [{ queue: 'cpu', status: 'waiting' }, 400, 'invalid_request', 'status'],
    [[], 400, 'invalid_request', 'a JSON object'],
  ])('%j is rejected: %i %s', async (payload, status, code, detail) => {
    const { cancel, broker } = await cancelApi()
    const problem = problemIn(await cancel(payload))
    expect(problem).toMatchObject({ status, code, detail: expect.stringContaining(detail) })
    expect(broker.cancels).toEqual([])
  })

  test('with an unknown id is a 404', async () => {
    const { ask } = await cancelApi()
    expect(problemIn(await ask({ url: '/v1/cancels/cpu-1' }))).toMatchObject({ status: 404, code: 'cancel_not_found' })
  })

  test('is a 429 while the queue has too many cancellations', async () => {
    const { cancel, broker } = await cancelApi()
    broker.trouble = 'limited'
    const response = await cancel({ queue: 'cpu' })
    expect(problemIn(response)).toMatchObject({ status: 429, code: 'too_many_cancels' })
    expect(response.headers['retry-after']).toBe('1')
  })

  test('is a 503 while Redis is down, and a 401 without a key', async () => {
    const { cancel, broker, app } = await cancelApi()
    broker.trouble = 'down'
    expect(problemIn(await cancel({ queue: 'cpu' }))).toMatchObject({ status: 503, code: 'redis_unavailable' })
    expect((await app.inject({ method: 'POST', url, payload: { queue: 'cpu' } })).statusCode).toBe(401)
  })
})

describe('a dry run', () => {
  const put = (api: Awaited<ReturnType<typeof cancelApi>>, count: number, more: object = {}) => {
    for (let n = 0; n < count; n++) {
      const random = Uint8Array.from({ length: 10 }, (_, i) => (i === 0 ? n >> 8 : i === 1 ? n : 0))
      api.broker.put({ id: createTaskId('cpu', NOW, random), enqueuedAt: NOW, ...more })
    }
  }

  test('answers with the number of open tasks that match, and cancels none', async () => {
    const api = await cancelApi()
    put(api, 3, { status: 'waiting', tags: ['batch:7'] })
    const answer = await api.cancel({ queue: 'cpu', tag: 'batch:7' }, '?dryRun=true')
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toEqual({
      queue: 'cpu',
      tag: 'batch:7',
      enqueuedUntil: new Date(NOW).toISOString(),
      matching: 3,
      exact: true,
    })
    expect(api.broker.cancels).toEqual([])
    expect((await api.cancel({ queue: 'cpu', tag: 'batch:8' }, '?dryRun=true')).json()).toMatchObject({ matching: 0 })
    expect((await api.cancel({ queue: 'cpu', olderThan: '1s' }, '?dryRun=true')).json()).toMatchObject({ matching: 0 })
  })

  test.each([
    ['active', 1],
    ['scheduled', 1],
    ['retrying', 1],
    ['completed', 0],
    ['dead', 0],
  ])('of a queue with one %s task counts %i', async (status, matching) => {
    const api = await cancelApi()
    put(api, 1, { status })
    expect((await api.cancel({ queue: 'cpu' }, '?dryRun=true')).json()).toMatchObject({ matching, exact: true })
  })

  test('reads a bounded number of tasks, and reports that the answer is a lower bound', async () => {
    const api = await cancelApi()
    put(api, 2_001)
    expect((await api.cancel({ queue: 'cpu' }, '?dryRun=true')).json()).toMatchObject({ matching: 2_000, exact: false })
  })

  test('is not assumed from another value', async () => {
    const api = await cancelApi()
    const problem = problemIn(await api.cancel({ queue: 'cpu' }, '?dryRun=1'))
    expect(problem.detail).toBe('dryRun: expected "true" or "false"')
    expect(api.broker.cancels).toEqual([])
  })
})
