// Tests cancelling tasks by filter over HTTP.
import { describe, expect, test } from 'vitest'
import { NOW, problemIn, testApi } from '../api.fixture.ts'

const url = '/v1/tasks/cancel'

async function cancelling() {
  const { ask, broker, app } = await testApi()
  return { ask, broker, app, cancel: (payload: unknown) => ask({ method: 'POST', url, payload: payload as object }) }
}

describe('a cancel by filter', () => {
  test('covers what was enqueued until now, is accepted, and says where it is told of', async () => {
    const { ask, broker, cancel } = await cancelling()
    const answer = await cancel({ queue: 'cpu' })
    expect(answer.statusCode).toBe(202)
    const view = answer.json()
    expect(view).toEqual({
      id: expect.stringMatching(/^cpu-/),
      queue: 'cpu',
      enqueuedUntil: new Date(NOW).toISOString(),
      status: 'pending',
      ended: 0,
      requestedAt: new Date(0).toISOString(),
      links: { self: `/v1/cancels/${view.id}` },
    })
    expect(answer.headers['location']).toBe(view.links.self)
    expect(broker.cancels[0]?.rule).toMatchObject({ queue: 'cpu', before: NOW, reason: 'cancelled' })
    expect((await ask({ url: view.links.self })).json()).toEqual({ ...view, ended: 3 })
  })

  test('takes a name, a tag and an age', async () => {
    const { broker, cancel } = await cancelling()
    const answer = await cancel({ queue: 'cpu', task: 'math.square', tag: 'batch:7', olderThan: '1h' })
    expect(answer.json()).toMatchObject({ task: 'math.square', tag: 'batch:7' })
    expect(broker.cancels[0]?.rule).toMatchObject({ task: 'math.square', tag: 'batch:7', before: NOW - 3_600_000 })
  })

  test('is told of as done', async () => {
    const { ask, broker, cancel } = await cancelling()
    const { id } = (await cancel({ queue: 'cpu' })).json()
    broker.cancels.splice(0, 1, { ...(broker.cancels[0] as (typeof broker.cancels)[0]), doneAt: NOW })
    const shown = await ask({ url: `/v1/cancels/${id}` })
    expect(shown.json()).toMatchObject({ status: 'done', doneAt: new Date(NOW).toISOString() })
  })

  test.each([
    [{ queue: 'gpu' }, 404, 'queue_not_found', "did you mean 'cpu'?"],
    [{ queue: 'cpu', task: 'math.sqare' }, 422, 'unknown_task', 'math.square'],
    [{ queue: 'mail', task: 'math.square' }, 400, 'invalid_request', "runs in the queue 'cpu', not in 'mail'"],
    [{}, 400, 'invalid_request', 'queue'],
    [{ queue: 'cpu', tag: 'a b' }, 400, 'invalid_request', 'tag: a tag is 1 to 64'],
    [{ queue: 'cpu', olderThan: 'long' }, 400, 'invalid_request', 'olderThan'],
    [{ queue: 'cpu', status: 'waiting' }, 400, 'invalid_request', 'status'],
    [[], 400, 'invalid_request', 'a JSON object'],
  ])('%j is refused: %i %s', async (payload, status, code, detail) => {
    const { cancel, broker } = await cancelling()
    const problem = problemIn(await cancel(payload))
    expect(problem).toMatchObject({ status, code, detail: expect.stringContaining(detail) })
    expect(broker.cancels).toEqual([])
  })

  test('of an id that nobody knows is a 404', async () => {
    const { ask } = await cancelling()
    expect(problemIn(await ask({ url: '/v1/cancels/cpu-1' }))).toMatchObject({ status: 404, code: 'cancel_not_found' })
  })

  test('with Redis down is a 503, and without a key is refused', async () => {
    const { cancel, broker, app } = await cancelling()
    broker.trouble = 'down'
    expect(problemIn(await cancel({ queue: 'cpu' }))).toMatchObject({ status: 503, code: 'redis_unavailable' })
    expect((await app.inject({ method: 'POST', url, payload: { queue: 'cpu' } })).statusCode).toBe(401)
  })
})
