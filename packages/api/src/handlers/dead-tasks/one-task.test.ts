// Tests retrying and deleting one dead task over HTTP.
import { EnqueueRateError, type GroupId } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { anId, KEY_NAME, problemIn, testApi } from '../../api.fixture.ts'

const AUDIT = 'dead tasks: request accepted'

async function deadTask() {
  const { ask, broker, lines, app } = await testApi()
  broker.put({ id: anId, status: 'dead', input: { n: 3 } })
  return {
    app,
    broker,
    retry: (payload?: object, id: string = anId) =>
      ask({ method: 'POST', url: `/v1/tasks/${id}/retry`, ...(payload === undefined ? {} : { payload }) }),
    remove: (query = '', id: string = anId) => ask({ method: 'DELETE', url: `/v1/tasks/${id}${query}` }),
    audited: () => lines.filter(({ message }) => message === AUDIT).map(({ fields }) => fields),
  }
}

describe('a retry', () => {
  test('runs a dead task again, and is audited', async () => {
    const { retry, broker, audited } = await deadTask()
    const response = await retry({ by: 'ann' })
    expect(response.statusCode).toBe(200)
    expect(response.json()).toEqual({
      id: anId,
      status: 'waiting',
      links: { self: `/v1/tasks/${anId}`, cancel: `/v1/tasks/${anId}/cancel` },
    })
    expect(broker.retries).toEqual([{ request: expect.stringMatching(/^[0-9a-f]{24}$/), by: `ann (${KEY_NAME})` }])
    expect(audited()).toEqual([
      {
        action: 'retry',
        queue: 'cpu',
        filter: { id: anId },
        matching: 1,
        by: `ann (${KEY_NAME})`,
        requestId: response.headers['x-request-id'],
      },
    ])
  })

  test.each([
    ['in its queue for the task and each follow-up that its call has named', {}, 3],
    ['in another queue for the copy, which has no such follow-ups', { queue: 'mail' }, 1],
  ])('%s takes tokens of the API key', async (_title, body, expected) => {
    const taken: number[] = []
    const take = (apiKeyName: string, tokens: number): undefined => {
      taken.push(tokens)
      if (taken.length > 1) throw new EnqueueRateError({ apiKeyName, rate: { max: 1, perMs: 1 }, retryAfterMs: 1 })
    }
    const { ask, broker } = await testApi({ rates: { take } })
    broker.put({ id: anId, status: 'dead', input: { n: 3 }, followUpQueues: ['cpu', 'mail'] })
    const retry = () => ask({ method: 'POST', url: `/v1/tasks/${anId}/retry`, payload: body })
    expect([(await retry()).statusCode, (await retry()).statusCode]).toEqual([200, 429])
    expect(taken).toEqual([expected, expected])
    expect(broker.retries).toHaveLength(1)
  })

  test('without a body names only the API key', async () => {
    const { retry, broker } = await deadTask()
    expect((await retry()).statusCode).toBe(200)
    expect(broker.retries).toMatchObject([{ by: KEY_NAME }])
  })

  test('with an id passes it to the broker, so that the request can be repeated', async () => {
    const { retry, broker } = await deadTask()
    await retry({ id: 'mine-1' })
    expect(broker.retries).toMatchObject([{ request: 'mine-1' }])
  })

  test('can replace the input with one that the contract accepts', async () => {
    const { retry, broker } = await deadTask()
    expect((await retry({ input: { n: 4 } })).statusCode).toBe(200)
    expect(broker.retries).toMatchObject([{ edit: { input: { n: 4 }, version: 1 } }])
  })

  test('of a task whose compensations were released must say that it is intended', async () => {
    const { retry, broker } = await deadTask()
    broker.change(anId, { compensatedAt: 1_000 })
    for (const body of [undefined, { queue: 'mail' }, { afterCompensation: false }]) {
      expect(problemIn(await retry(body))).toMatchObject({ status: 409, code: 'already_compensated' })
    }
    expect([broker.retries, broker.enqueued]).toEqual([[], []])
    expect((await retry({ afterCompensation: true })).statusCode).toBe(200)
    expect(broker.retries).toMatchObject([{ afterCompensation: true }])
  })

  test('with an input that the contract rejects changes nothing', async () => {
    const { retry, broker, audited } = await deadTask()
    expect(problemIn(await retry({ input: { n: 'four' } }))).toMatchObject({
      status: 422,
      code: 'invalid_input',
      errors: [{ pointer: '/input/n' }],
    })
    expect(broker.retries).toEqual([])
    expect(audited()).toEqual([])
  })

  test.each([{ by: '' }, { id: 'a b' }, { colour: 'red' }, []])('with the body %j is rejected', async (payload) => {
    const { retry } = await deadTask()
    expect(problemIn(await retry(payload))).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  test('to another queue enqueues a copy once, however often the request is sent, and leaves the task dead', async () => {
    const { retry, broker } = await deadTask()
    const followUpOf = 'group-01jd3v7n8q0000000000000000' as GroupId
    broker.change(anId, { tags: ['batch:7'], priority: 3, maxAttempts: 2, followUpOf })
    const response = await retry({ queue: 'mail', id: 'mine-1', input: { n: 4 } })
    const { id } = response.json()
    expect(response.json()).toMatchObject({ id: expect.stringMatching(/^mail-/), status: 'waiting', retryOf: anId })
    expect((await retry({ queue: 'mail', id: 'mine-1', input: { n: 4 } })).json().id).toBe(id)
    expect((await retry({ queue: 'mail', id: 'mine-2' })).json().id).not.toBe(id)
    const labels = { tags: ['batch:7'], priority: 3, maxAttempts: 2 }
    const copy = { task: 'math.square', queue: 'mail', ...labels, followUpOf, retryOf: anId }
    expect(broker.enqueued).toMatchObject([
      { ...copy, id, input: { n: 4 } },
      { ...copy, input: { n: 3 } },
    ])
    expect(broker.retries[0]).toMatchObject({ request: 'mine-1', copy: id })
    expect((await broker.find(anId))?.status).toBe('dead')
  })

  test.each(['active', 'deleted'] as const)(
    'to another queue responds with the copy, although the dead task is %s by the time the copy is enqueued',
    async (other) => {
      const { retry, broker, audited } = await deadTask()
      const { enqueue } = broker
      broker.enqueue = async (task) => {
        if (other === 'active') broker.change(anId, { status: 'active' })
        else await broker.deleteDead(anId)
        return enqueue(task)
      }
      const response = await retry({ queue: 'mail', id: 'mine-1' })
      const id = broker.enqueued[0]?.id
      expect([response.statusCode, response.json()]).toMatchObject([200, { id, status: 'waiting', retryOf: anId }])
      expect(audited()).toMatchObject([{ action: 'retry', filter: { id: anId } }])
    },
  )

  test('to another queue that is sent again responds with the same copy, although the dead task runs again', async () => {
    const { retry, broker } = await deadTask()
    const { id } = (await retry({ queue: 'mail', id: 'mine-1' })).json()
    broker.change(anId, { status: 'active' })
    expect((await retry({ queue: 'mail', id: 'mine-1' })).json()).toMatchObject({ id, retryOf: anId })
    expect(problemIn(await retry({ queue: 'mail', id: 'mine-2' }))).toMatchObject({ code: 'task_not_dead' })
    expect(broker.enqueued).toHaveLength(1)
  })

  test('to an unknown queue, or of a task that is not dead to another queue, enqueues nothing', async () => {
    const { retry, broker } = await deadTask()
    expect(problemIn(await retry({ queue: 'nope' }))).toMatchObject({ status: 404, code: 'queue_not_found' })
    broker.change(anId, { status: 'active' })
    expect(problemIn(await retry({ queue: 'mail' }))).toMatchObject({ status: 409, code: 'task_not_dead' })
    expect(broker.enqueued).toEqual([])
  })

  test('of a task that is not dead is a 409 that names the status', async () => {
    const { retry, broker, audited } = await deadTask()
    broker.change(anId, { status: 'completed' })
    const problem = problemIn(await retry())
    expect(problem).toMatchObject({ status: 409, code: 'task_not_dead' })
    expect(problem.detail).toContain('completed')
    expect(audited()).toEqual([])
  })

  test.each(['17', anId.replace('cpu-', 'gpu-'), anId.replace('0', '1')])(
    'of the unknown task %s is a 404',
    async (id) => {
      const { retry, remove } = await deadTask()
      expect(problemIn(await retry(undefined, id))).toMatchObject({ status: 404, code: 'task_not_found' })
      expect(problemIn(await remove('', id))).toMatchObject({ status: 404, code: 'task_not_found' })
    },
  )
})

describe('a delete', () => {
  test('deletes a dead task, and is audited', async () => {
    const { remove, broker, audited } = await deadTask()
    const response = await remove('?by=ann')
    expect([response.statusCode, response.json()]).toEqual([200, { id: anId }])
    expect(await broker.find(anId)).toBeUndefined()
    expect(audited()).toMatchObject([{ action: 'delete', filter: { id: anId }, matching: 1, by: `ann (${KEY_NAME})` }])
    expect(problemIn(await remove())).toMatchObject({ status: 404, code: 'task_not_found' })
  })

  test('of a task that is not dead is a 409', async () => {
    const { remove, broker } = await deadTask()
    broker.change(anId, { status: 'active' })
    expect(problemIn(await remove())).toMatchObject({ status: 409, code: 'task_not_dead' })
  })

  test('without a key is a 401', async () => {
    const { app } = await deadTask()
    expect((await app.inject({ method: 'DELETE', url: `/v1/tasks/${anId}` })).statusCode).toBe(401)
  })
})
