// Tests cancelling a task over HTTP.
import { describe, expect, test } from 'vitest'
import { anId, KEY_NAME, problemIn, testApi } from '../api.fixture.ts'

const url = `/v1/tasks/${anId}/cancel`

async function cancelApi(path = url) {
  const { ask, broker, events } = await testApi()
  const cancel = (to = path, payload?: object) =>
    ask({ method: 'POST', url: to, ...(payload === undefined ? {} : { payload }) })
  return { cancel, broker, events }
}

describe('a cancel', () => {
  test('of a waiting task ends it, and is counted once', async () => {
    const { cancel, broker, events } = await cancelApi()
    broker.put({ id: anId })
    const answer = await cancel()
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toMatchObject({
      id: anId,
      outcome: 'cancelled',
      status: 'cancelled',
      links: { self: `/v1/tasks/${anId}` },
    })
    expect(events).toEqual([{ event: 'task.cancelled', queue: 'cpu', task: 'math.square', id: anId }])
    expect((await cancel()).json()).toMatchObject({ outcome: 'already_ended', status: 'cancelled' })
    expect(events).toHaveLength(1)
  })

  test('of a running long task is answered at once, or, with a wait, when the task has ended', async () => {
    const { cancel, broker } = await cancelApi()
    broker.put({ id: anId, task: 'email.welcome', status: 'active' })
    expect((await cancel()).json()).toMatchObject({ outcome: 'cancelling', status: 'active' })
    const waiting = cancel(`${url}?wait=5`)
    await broker.firstWaiter
    broker.change(anId, { status: 'cancelled' })
    expect((await waiting).json()).toMatchObject({ outcome: 'cancelled', status: 'cancelled' })
  })

  test('that comes too late reports how the task ended', async () => {
    const { cancel, broker } = await cancelApi()
    broker.put({ id: anId, task: 'email.welcome', status: 'active' })
    const waiting = cancel(`${url}?wait=5`)
    await broker.firstWaiter
    broker.change(anId, { status: 'completed' })
    expect((await waiting).json()).toMatchObject({ outcome: 'already_ended', status: 'completed' })
  })

  test('of a running short task is rejected', async () => {
    const { cancel, broker } = await cancelApi()
    broker.put({ id: anId, status: 'active' })
    expect((await cancel()).json()).toMatchObject({ outcome: 'not_cancellable', status: 'active' })
  })

  test.each([
    ['that does not exist', url],
    ['with a malformed id', '/v1/tasks/17/cancel'],
    ['of an unknown queue', url.replace('cpu-', 'gpu-')],
  ])('of a task %s is a 404', async (_name, path) => {
    const { cancel } = await cancelApi()
    expect(problemIn(await cancel(path))).toMatchObject({ status: 404, code: 'task_not_found' })
  })

  test.each([
    [undefined, KEY_NAME],
    [{}, KEY_NAME],
    [{ by: 'ann' }, `ann (${KEY_NAME})`],
  ])('with the body %j is recorded as requested by %s', async (payload, by) => {
    const { cancel, broker } = await cancelApi()
    broker.put({ id: anId })
    expect((await cancel(url, payload)).statusCode).toBe(200)
    expect(broker.cancelledBy).toEqual([by])
  })

  test.each([{ by: '' }, { by: 7 }, { reason: 'x' }, []])('with the body %j is rejected', async (payload) => {
    const { cancel, broker } = await cancelApi()
    broker.put({ id: anId })
    expect(problemIn(await cancel(url, payload))).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(broker.cancelledBy).toEqual([])
  })

  test('is a 503 while Redis is down', async () => {
    const { cancel, broker } = await cancelApi()
    broker.trouble = 'down'
    expect(problemIn(await cancel())).toMatchObject({ status: 503, code: 'redis_unavailable' })
  })

  test('is a 401 without a key', async () => {
    const { app } = await testApi()
    expect((await app.inject({ method: 'POST', url })).statusCode).toBe(401)
  })
})
