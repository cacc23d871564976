// Tests what POST /v1/tasks does if the queue is full, for each policy.
import { request as httpRequest } from 'node:http'
import { defineCatalogue, defineQueue, defineTask, type WhenFull } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { KEY, problemIn, testApi } from '../../api.fixture.ts'

const SQUARE = { task: 'math.square', input: { n: 4 } }
const BLOCK = { ...SQUARE, whenFull: { block: '30s' } }

async function fullApi() {
  const api = await testApi()
  api.broker.trouble = 'queue full'
  return { ...api, isBlocked: (count = 1) => eventually(() => api.blocked.count('cpu') === count) }
}

/** An API whose queue has a policy. */
function apiWith(whenFull: WhenFull) {
  const queue = defineQueue({ name: 'cpu', limits: { maxTasks: 1 }, whenFull })
  const task = defineTask({ name: 'math.square', queue, input: z.object({ n: z.int() }) })
  return testApi({ catalogue: defineCatalogue(task) })
}

describe('a task that may be dropped', () => {
  test.each([
    ['by its request', () => testApi(), { ...SQUARE, whenFull: 'drop' }],
    ['by its queue', () => apiWith('drop'), SQUARE],
  ])('%s is answered as dropped, is counted, and has no id', async (_by, open, body) => {
    const { broker, events, post } = await open()
    broker.trouble = 'queue full'
    const answer = await post(body)
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toEqual({ action: 'dropped' })
    expect(answer.headers.location).toBeUndefined()
    expect(answer.headers['retry-after']).toBeUndefined()
    expect(events).toEqual([
      { event: 'task.refused', queue: 'cpu', task: 'math.square', limit: 'maxTasks', action: 'dropped' },
    ])
  })

  test('is stored if there is room', async () => {
    const { broker, post } = await testApi()
    const answer = await post({ ...SQUARE, whenFull: 'drop' })
    expect(answer.statusCode).toBe(202)
    expect(broker.enqueued).toHaveLength(1)
  })

  test('is rejected if its request says so, although its queue drops tasks', async () => {
    const { broker, post } = await apiWith('drop')
    broker.trouble = 'queue full'
    expect(problemIn(await post({ ...SQUARE, whenFull: 'reject' }))).toMatchObject({ code: 'queue_full' })
  })
})

describe('a blocked caller', () => {
  test.each([
    ['by its request', () => testApi(), BLOCK],
    ['by its queue', () => apiWith({ block: '30s' }), SQUARE],
  ])('%s is answered as soon as there is room, and its task is as of then', async (_by, open, body) => {
    const { broker, post, blocked, events } = await open()
    broker.trouble = 'queue full'
    const answer = post({ ...body, delay: '5s' })
    await eventually(() => blocked.count('cpu') === 1)
    broker.trouble = 'none'
    const { statusCode, ...rest } = await answer
    expect(statusCode).toBe(202)
    expect(rest.json()).toMatchObject({ id: broker.enqueued[0]?.id, action: 'created', status: 'scheduled' })
    expect(blocked.count('cpu')).toBe(0)
    expect(events.map(({ event }) => event)).toEqual(['task.enqueued'])
  })

  test('is rejected when its wait is over', async () => {
    const { post, broker, events } = await fullApi()
    const answer = await post({ ...SQUARE, whenFull: { block: '100ms' } })
    expect(problemIn(answer)).toMatchObject({ status: 429, code: 'queue_full' })
    expect(answer.headers['ratelimit-policy']).toBe('"queue-tasks";q=1000')
    expect(events).toMatchObject([{ event: 'task.refused', action: 'rejected' }])
    expect(broker.enqueued).toEqual([])
  })

  test('is answered with 503 when the API shuts down, without the id of a task', async () => {
    const { post, closing, isBlocked, events, broker } = await fullApi()
    const answer = post(BLOCK)
    await isBlocked()
    closing.abort()
    const problem = problemIn(await answer)
    expect(problem).toMatchObject({ status: 503, code: 'shutting_down' })
    expect(problem.taskId).toBeUndefined()
    expect(events).toEqual([])
    expect(broker.enqueued).toEqual([])
  })

  test('that disconnects is released, and its task is never stored', async () => {
    const { app, isBlocked, broker, blocked } = await fullApi()
    await app.listen({ host: '127.0.0.1', port: 0 })
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const caller = httpRequest(`${app.listeningOrigin}/v1/tasks`, { method: 'POST', headers })
    caller.on('error', () => {})
    caller.end(JSON.stringify(BLOCK))
    await isBlocked()
    caller.destroy()
    await eventually(() => blocked.count('cpu') === 0)
    broker.trouble = 'none'
    expect(broker.enqueued).toEqual([])
  })

  test('gets the id of its task if Redis fails during its try, because the task may be stored', async () => {
    const { post, isBlocked, broker } = await fullApi()
    const answer = post(BLOCK)
    await isBlocked()
    broker.trouble = 'down'
    const problem = problemIn(await answer)
    expect(problem).toMatchObject({ status: 503, code: 'redis_unavailable' })
    expect(problem.taskId).toMatch(/^cpu-/)
  })
})

test.each(['wait', { block: '31s' }])('the policy %j of a request is rejected', async (whenFull) => {
  const { post, broker } = await testApi()
  const problem = problemIn(await post({ ...SQUARE, whenFull }))
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(problem.errors?.[0]).toMatchObject({ pointer: expect.stringMatching(/^\/whenFull/) })
  expect(broker.enqueued).toEqual([])
})
