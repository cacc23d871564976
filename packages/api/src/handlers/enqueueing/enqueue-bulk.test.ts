// Tests what POST /v1/tasks/bulk stores and returns.
import { type BulkResponse, BullpenError, type EnqueueRequest, QueueFullError } from '@bullpen/contract'
import { MAX_ATOMIC_TASKS, readTaskId } from '@bullpen/contract/internal'
import { createBlockedCallers } from '@bullpen/engine/internal'
import { eventually, fakeClock } from '@bullpen/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { NOW, problemIn, testApi } from '../../api.fixture.ts'
import { SECRET } from '../../fake-broker.fixture.ts'

const SQUARE = { task: 'math.square', input: { n: 4 } }
const WELCOME = { task: 'email.welcome', input: { to: 'a@example.com' } }

async function bulkApi(more: Parameters<typeof testApi>[0] = {}) {
  const api = await testApi(more)
  const send = (body: unknown, headers = {}) =>
    api.ask({
      method: 'POST',
      url: '/v1/tasks/bulk',
      headers: { 'content-type': 'application/json', ...headers },
      payload: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return {
    ...api,
    send,
    async bulk(tasks: readonly unknown[], headers = {}): Promise<BulkResponse> {
      const response = await send({ tasks }, headers)
      expect(response.statusCode).toBe(200)
      return response.json()
    },
  }
}

test('each task is stored with its own options and gets its own result, in order', async () => {
  const { bulk, broker, events } = await bulkApi()
  const { failed, results } = await bulk([SQUARE, { ...WELCOME, delay: '1h', tags: ['a'] }], { 'x-request-id': 'r-1' })
  expect(failed).toBe(0)
  const [first, second] = broker.enqueued
  expect(results).toEqual([
    { id: first?.id, action: 'created', status: 'waiting' },
    { id: second?.id, action: 'created', status: 'scheduled' },
  ])
  expect(readTaskId(first?.id ?? '')).toMatchObject({ queue: 'cpu', createdAt: NOW })
  expect(first).toMatchObject({ input: { n: 4 }, enqueuedAt: NOW, correlationId: 'r-1', delayMs: undefined })
  expect(second).toMatchObject({ queue: 'mail', tags: ['a'], delayMs: 3_600_000, correlationId: 'r-1' })
  expect(events).toMatchObject([
    { event: 'task.enqueued', queue: 'cpu', id: first?.id },
    { event: 'task.enqueued', queue: 'mail', id: second?.id },
  ])
})

test('an invalid task does not affect the others, and its errors point into the body', async () => {
  const { bulk, broker } = await bulkApi()
  const { failed, results } = await bulk([
    { task: 'math.square', input: { n: 'x' } },
    SQUARE,
    { task: 'math.sqaure', input: { n: 4 } },
    7,
    { ...WELCOME, retry: { maxAttempts: 999 } },
    { ...SQUARE, colour: 'red' },
  ])
  expect(failed).toBe(5)
  expect(broker.enqueued).toHaveLength(1)
  expect(results).toMatchObject([
    {
      error: {
        status: 422,
        code: 'invalid_input',
        type: '/problems/invalid_input',
        detail: '/tasks/0/input/n: expected a number, got a string',
        errors: [{ pointer: '/tasks/0/input/n', message: 'expected a number, got a string' }],
      },
    },
    { id: broker.enqueued[0]?.id, action: 'created' },
    {
      error: {
        code: 'unknown_task',
        detail: '/tasks/2: unknown task "math.sqaure"; did you mean math.square?',
        errors: [{ pointer: '/tasks/2' }],
      },
    },
    { error: { code: 'invalid_request', errors: [{ pointer: '/tasks/3' }] } },
    { error: { code: 'invalid_request', errors: [{ pointer: '/tasks/4/retry/maxAttempts' }] } },
    {
      error: {
        code: 'invalid_request',
        errors: [
          { pointer: '/tasks/5/colour', message: expect.stringContaining('unknown field; expected task, input') },
        ],
      },
    },
  ])
})

test('a task that the broker rejects has an error, and the others have their results', async () => {
  const { bulk, broker, events } = await bulkApi()
  const { enqueueBulk } = broker
  broker.enqueueBulk = async (tasks) => {
    broker.trouble = 'drains'
    const [first] = await enqueueBulk(tasks.slice(0, 1))
    broker.trouble = 'none'
    return [...(first === undefined ? [] : [first]), ...(await enqueueBulk(tasks.slice(1)))]
  }
  const { failed, results } = await bulk([SQUARE, { task: 'no.task' }, SQUARE])
  expect(failed).toBe(2)
  expect(results).toMatchObject([
    { error: { code: 'queue_draining', status: 503 } },
    { error: { code: 'unknown_task' } },
    { id: broker.enqueued[0]?.id, action: 'created' },
  ])
  expect(results[0]).not.toHaveProperty('error.taskId')
  expect(events).toHaveLength(1)
})

test('a task whose outcome is unknown has an error with its id, unless the request has an idempotency key', async () => {
  const { bulk, broker } = await bulkApi()
  broker.trouble = 'down'
  const { failed, results } = await bulk([SQUARE, WELCOME])
  expect(failed).toBe(2)
  expect(results).toMatchObject([
    { error: { code: 'redis_unavailable', taskId: expect.stringMatching(/^cpu-/) } },
    { error: { code: 'redis_unavailable', taskId: expect.stringMatching(/^mail-/) } },
  ])
  const { results: again } = await bulk([SQUARE], { 'idempotency-key': '"k"' })
  expect(again).toMatchObject([{ error: { code: 'redis_unavailable' } }])
  expect(again[0]).not.toHaveProperty('error.taskId')
  expect(again[0]).not.toHaveProperty('error.outcome')
})

test('a task that was not sent to Redis has an error that says so', async () => {
  const { bulk, send, broker } = await bulkApi()
  const reason = new BullpenError('redis_unavailable', 'Redis is not reachable', { hadNoEffect: true })
  broker.enqueueBulk = async (tasks) => tasks.map(() => ({ status: 'rejected', reason }))
  broker.enqueueAll = () => Promise.reject(reason)
  const error = { code: 'redis_unavailable', outcome: 'refused' }
  const { results } = await bulk([SQUARE])
  expect(results).toMatchObject([{ error }])
  expect(results[0]).not.toHaveProperty('error.taskId')
  const problem = problemIn(await send({ tasks: [SQUARE], atomic: true }))
  expect(problem).toMatchObject(error)
  expect(problem.taskId).toBeUndefined()
})

test('an unexpected error is logged, and its message is not returned', async () => {
  const { bulk, broker, lines } = await bulkApi()
  broker.trouble = 'breaks'
  const response = await bulk([SQUARE])
  expect(response.results).toMatchObject([{ error: { code: 'internal_error', status: 500 } }])
  expect(JSON.stringify(response)).not.toContain(SECRET)
  expect(lines.filter(({ level }) => level === 'error')).toMatchObject([{ message: 'request failed' }])
})

test('an idempotency key becomes a different key for each index, and belongs to the task at that index', async () => {
  const { bulk, broker } = await bulkApi()
  const headers = { 'idempotency-key': '"k"' }
  const tasks: readonly EnqueueRequest[] = [SQUARE, SQUARE, WELCOME]
  await bulk(tasks, headers)
  await bulk([SQUARE, { ...SQUARE, input: { n: 5 } }, WELCOME], headers)
  const records = broker.enqueued.map(({ idempotency }) => idempotency)
  const first = records.slice(0, 3)
  const second = records.slice(3)
  expect(new Set(first.map((each) => each?.key)).size).toBe(3)
  expect(second.map((each) => each?.key)).toEqual(first.map((each) => each?.key))
  expect(second.map((each) => each?.request === first[second.indexOf(each)]?.request)).toEqual([true, false, true])
})

test('a task that an earlier request had stored is marked, and is not counted again', async () => {
  const { bulk, broker, events } = await bulkApi()
  broker.enqueueBulk = async ([task]) => [
    {
      status: 'fulfilled',
      value: { id: task?.id ?? expect.fail(), action: 'created', replayed: { status: 'scheduled' } },
    },
  ]
  const { results } = await bulk([SQUARE], { 'idempotency-key': '"k"' })
  expect(results).toMatchObject([{ action: 'created', status: 'scheduled', replayed: true }])
  expect(events).toEqual([])
})

test.each([
  ['no tasks', { tasks: [] }, '/tasks', 'expected at least 1 item'],
  ['1,001 tasks', { tasks: Array.from({ length: 1_001 }, () => SQUARE) }, '/tasks', 'expected at most 1000 items'],
  ['no list', { tasks: SQUARE }, '/tasks', 'expected an array, got an object'],
  ['an unknown field', { tasks: [SQUARE], wait: '10s' }, '/wait', 'unknown field; expected tasks, atomic'],
])('a body with %s is rejected', async (_name, body, pointer, message) => {
  const { send, broker } = await bulkApi()
  expect(problemIn(await send(body))).toMatchObject({ code: 'invalid_request', errors: [{ pointer, message }] })
  expect(broker.enqueued).toEqual([])
})

test('a malformed Idempotency-Key header rejects the whole request', async () => {
  const { send } = await bulkApi()
  const response = await send({ tasks: [SQUARE] }, { 'idempotency-key': '"' })
  expect(problemIn(response)).toMatchObject({ code: 'invalid_request', errors: [{ header: 'Idempotency-Key' }] })
})

test('a body has a limit of its own', async () => {
  const { send, bulk } = await bulkApi()
  const task = { ...WELCOME, input: { ...WELCOME.input, extra: 'x'.repeat(100_000) } }
  expect((await bulk(Array.from({ length: 40 }, () => task))).failed).toBe(0)
  const problem = problemIn(await send({ tasks: Array.from({ length: 42 }, () => task) }))
  expect(problem).toMatchObject({
    code: 'payload_too_large',
    detail: 'the body is larger than the limit of 4194304 bytes',
  })
})

test('an atomic request returns the result of each task', async () => {
  const { send, broker, events } = await bulkApi()
  const response = await send({ tasks: [SQUARE, { ...SQUARE, delay: '1h' }], atomic: true })
  const [first, second] = broker.enqueued
  expect(response.json()).toEqual({
    failed: 0,
    results: [
      { id: first?.id, action: 'created', status: 'waiting' },
      { id: second?.id, action: 'created', status: 'scheduled' },
    ],
  })
  expect(events).toHaveLength(2)
})

test('an atomic request with invalid tasks stores none, and its problem lists the errors of all', async () => {
  const { send, broker } = await bulkApi()
  const tasks = [SQUARE, { task: 'math.square', input: { n: 'x' } }, { task: 'no.task' }]
  const problem = problemIn(await send({ tasks, atomic: true }))
  expect(problem).toMatchObject({
    status: 422,
    code: 'invalid_input',
    detail: '/tasks/1/input/n: expected a number, got a string (and 1 other task is also invalid)',
    errors: [{ pointer: '/tasks/1/input/n' }, { pointer: '/tasks/2' }],
  })
  expect(broker.enqueued).toEqual([])
})

test('an atomic request for several queues is rejected with the first task of another queue', async () => {
  const { send, broker } = await bulkApi()
  const problem = problemIn(await send({ tasks: [SQUARE, SQUARE, WELCOME], atomic: true }))
  expect(problem).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/tasks/2/task' }] })
  expect(problem.detail).toMatch(/^\/tasks\/2\/task: all tasks must belong to the first task's queue, 'cpu'/)
  expect(broker.enqueued).toEqual([])
})

test('an atomic request with too many tasks is rejected with the limit', async () => {
  const { send } = await bulkApi()
  const tasks = Array.from({ length: MAX_ATOMIC_TASKS + 1 }, () => SQUARE)
  const problem = problemIn(await send({ tasks, atomic: true }))
  expect(problem).toMatchObject({ status: 413, code: 'payload_too_large' })
  expect(problem.detail).toContain(`at most ${MAX_ATOMIC_TASKS} tasks`)
})

test("an atomic request whose outcome is unknown gets the first task's id", async () => {
  const { send, broker } = await bulkApi()
  broker.trouble = 'down'
  const problem = problemIn(await send({ tasks: [SQUARE, SQUARE], atomic: true }))
  expect(problem).toMatchObject({ status: 503, taskId: expect.stringMatching(/^cpu-/) })
  broker.trouble = 'drains'
  expect(problemIn(await send({ tasks: [SQUARE], atomic: true }))).not.toHaveProperty('taskId')
})

describe('if the queue is full', () => {
  async function fullApi() {
    const api = await bulkApi()
    const full = new QueueFullError({ queue: 'cpu', limit: 'maxTasks', max: 1, found: 1 })
    api.broker.enqueueBulk = async (tasks) => tasks.map(() => ({ status: 'rejected', reason: full }))
    api.broker.enqueueAll = () => Promise.reject(full)
    return { ...api, refused: () => api.events.filter(({ event }) => event === 'task.refused') }
  }

  test("each task's policy decides", async () => {
    const { bulk, refused, broker } = await fullApi()
    const { failed, results } = await bulk([
      SQUARE,
      { ...SQUARE, whenFull: 'drop' },
      // By the second try, there is room.
      { ...SQUARE, whenFull: { block: '10s' } },
    ])
    expect(failed).toBe(1)
    expect(results).toMatchObject([
      { error: { code: 'queue_full', status: 429, retryAfter: 1 } },
      { action: 'dropped' },
      { id: broker.enqueued[0]?.id, action: 'created' },
    ])
    expect(refused()).toMatchObject([{ action: 'rejected' }, { action: 'dropped' }])
  })

  test('any number of tasks can wait for room without a warning of a leak', async () => {
    const { bulk, broker, blocked } = await fullApi()
    const warnings: string[] = []
    const onWarning = ({ name }: Error): void => {
      warnings.push(name)
    }
    process.on('warning', onWarning)
    onTestFinished(() => {
      process.off('warning', onWarning)
    })
    broker.trouble = 'queue full'
    const answer = bulk(Array.from({ length: 30 }, () => ({ ...SQUARE, whenFull: { block: '10s' } })))
    await eventually(() => blocked.count('cpu') === 30)
    broker.trouble = 'none'
    expect(await answer).toMatchObject({ failed: 0 })
    expect(warnings).not.toContain('MaxListenersExceededWarning')
  })

  test('an atomic request is rejected, and all its tasks are counted', async () => {
    const { send, refused } = await fullApi()
    const response = await send({ tasks: [SQUARE, SQUARE], atomic: true })
    expect(problemIn(response)).toMatchObject({ code: 'queue_full' })
    expect(response.headers['ratelimit-policy']).toBe('"queue-tasks";q=1')
    expect(refused()).toHaveLength(2)
  })

  test('a task of an atomic request must not have a policy of its own', async () => {
    const { send } = await bulkApi()
    const problem = problemIn(await send({ tasks: [SQUARE, { ...SQUARE, whenFull: 'drop' }], atomic: true }))
    expect(problem).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/tasks/1/whenFull' }] })
  })
})

test('the tasks that wait for room do not overtake earlier callers, and keep their order', async () => {
  const clock = fakeClock()
  const blocked = createBlockedCallers(clock)
  const { broker, post, bulk } = await bulkApi({ blocked })
  const wait = (n: number) => ({ task: 'math.square', input: { n }, whenFull: { block: '30s' } })
  broker.trouble = 'queue full'
  const calls: PromiseLike<unknown>[] = [post(wait(1))]
  await eventually(() => blocked.count('cpu') === 1)
  broker.trouble = 'none'
  // The task that does not wait may take the room first.
  calls.push(bulk([wait(2), { ...wait(3), whenFull: 'reject' }, wait(4)]))
  await eventually(() => blocked.count('cpu') === 3)
  await clock.advance(20)
  await Promise.all(calls)
  expect(broker.enqueued.map(({ input }) => (input as { n: number }).n)).toEqual([3, 1, 2, 4])
})
