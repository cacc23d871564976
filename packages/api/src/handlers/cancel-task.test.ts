// Tests cancelling a task over HTTP.
import { describe, expect, test } from 'vitest'
import { anId, problemIn, testApi } from '../api.fixture.ts'

const url = `/v1/tasks/${anId}/cancel`

async function cancelling(path = url) {
  const { ask, broker, events } = await testApi()
  const cancel = (to = path) => ask({ method: 'POST', url: to })
  return { cancel, broker, events }
}

describe('a cancel', () => {
  test('of a task that waits ends it, is counted, and says where to look', async () => {
    const { cancel, broker, events } = await cancelling()
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

  test('of a long task that runs is under way, or waits for its end where the caller does', async () => {
    const { cancel, broker } = await cancelling()
    broker.put({ id: anId, task: 'email.welcome', status: 'active' })
    expect((await cancel()).json()).toMatchObject({ outcome: 'cancelling', status: 'active' })
    const waiting = cancel(`${url}?wait=5`)
    await broker.firstWaiter
    broker.change(anId, { status: 'cancelled' })
    expect((await waiting).json()).toMatchObject({ outcome: 'cancelled', status: 'cancelled' })
  })

  test('that comes too late says how the task ended', async () => {
    const { cancel, broker } = await cancelling()
    broker.put({ id: anId, task: 'email.welcome', status: 'active' })
    const waiting = cancel(`${url}?wait=5`)
    await broker.firstWaiter
    broker.change(anId, { status: 'completed' })
    expect((await waiting).json()).toMatchObject({ outcome: 'already_ended', status: 'completed' })
  })

  test('of a short task that runs is not possible', async () => {
    const { cancel, broker } = await cancelling()
    broker.put({ id: anId, status: 'active' })
    expect((await cancel()).json()).toMatchObject({ outcome: 'not_cancellable', status: 'active' })
  })

  test.each([
    ['that is not there', url],
    ['whose id is no id', '/v1/tasks/17/cancel'],
    ['of a queue that nobody has', url.replace('cpu-', 'gpu-')],
  ])('of a task %s is a 404', async (_name, path) => {
    const { cancel } = await cancelling()
    expect(problemIn(await cancel(path))).toMatchObject({ status: 404, code: 'task_not_found' })
  })

  test('with Redis down is a 503', async () => {
    const { cancel, broker } = await cancelling()
    broker.trouble = 'down'
    expect(problemIn(await cancel())).toMatchObject({ status: 503, code: 'redis_unavailable' })
  })

  test('without a key is refused', async () => {
    const { app } = await testApi()
    expect((await app.inject({ method: 'POST', url })).statusCode).toBe(401)
  })
})
