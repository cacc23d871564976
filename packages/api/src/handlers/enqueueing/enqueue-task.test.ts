// Tests what POST /v1/tasks stores and answers.
import { openBroker } from '@bullpen/bullmq'
import { type Accepted, BullpenError, defineCatalogue, defineQueue, defineTask, type TaskId } from '@bullpen/contract'
import { readTaskId } from '@bullpen/contract/internal'
import { uniqueKeyTaken } from '@bullpen/engine/internal'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { anId, catalogue, NOW, problemIn, testApi } from '../../api.fixture.ts'

const SQUARE = { task: 'math.square', input: { n: 4 } }
const WELCOME = { task: 'email.welcome', input: { to: 'a@example.com' } }
const TRACE = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' }

describe('an accepted task', () => {
  test('is answered with its id, the action, its status and links', async () => {
    const { post, broker, events, timed } = await testApi()
    const answer = await post(SQUARE)
    expect(answer.statusCode).toBe(202)
    const { id, action, status, links } = answer.json<Accepted>()
    expect(readTaskId(id)).toMatchObject({ queue: 'cpu', createdAt: NOW })
    expect([action, status]).toEqual(['created', 'waiting'])
    expect(answer.headers.location).toBe(`/v1/tasks/${id}`)
    expect(links).toEqual({ self: `/v1/tasks/${id}`, cancel: `/v1/tasks/${id}/cancel` })
    expect(broker.enqueued).toEqual([
      {
        id,
        apiKeyName: '0813ba6d',
        passesOnApiKey: false,
        caller: 'only',
        task: 'math.square',
        version: 1,
        queue: 'cpu',
        input: { n: 4 },
        maxAttempts: catalogue.get('math.square').retry.maxAttempts,
        priority: 0,
        durability: 'primary',
        enqueuedAt: NOW,
        meta: undefined,
        correlationId: undefined,
        traceContext: undefined,
        concurrencyKey: undefined,
        delayMs: undefined,
        timeoutMs: undefined,
      },
    ])
    expect(events).toEqual([{ event: 'task.enqueued', queue: 'cpu', task: 'math.square', id }])
    expect(timed).toEqual([{ queue: 'cpu', seconds: expect.any(Number) }])
  })

  test('passes its API key on to its child tasks if any queue counts the tasks of API keys', async () => {
    const queue = defineQueue({ name: 'reports', limits: { perApiKey: { maxUnfinishedTasks: 5 } } })
    const counted = defineTask({ name: 'reports.monthly', queue, input: z.object({}) })
    const { post, broker } = await testApi({ catalogue: defineCatalogue(catalogue.get('math.square'), counted) })
    await post(SQUARE)
    expect(broker.enqueued[0]).toMatchObject({ apiKeyName: '0813ba6d', passesOnApiKey: true })
  })

  test('may have follow-ups with options of their own, which inherit its correlation id, its trace and its API key', async () => {
    const { ask, broker } = await testApi()
    const payload = {
      ...SQUARE,
      onSuccess: [{ ...WELCOME, delay: '5s', tags: ['a'], onEnd: [SQUARE] }],
      onFailure: [WELCOME],
    }
    const response = await ask({
      method: 'POST',
      url: '/v1/tasks',
      payload,
      headers: { 'x-request-id': 'r-1', ...TRACE },
    })
    expect(response.statusCode).toBe(202)
    const inherited = { correlationId: 'r-1', traceContext: TRACE, apiKeyName: '0813ba6d' }
    const nested = [{ on: 'end', task: { task: 'math.square', input: { n: 4 }, ...inherited } }]
    expect(broker.enqueued[0]?.traceContext).toEqual(TRACE)
    expect(broker.enqueued[0]?.followUps).toMatchObject([
      { on: 'success', task: { task: 'email.welcome', delayMs: 5_000, tags: ['a'], followUps: nested, ...inherited } },
      { on: 'failure', task: { task: 'email.welcome', queue: 'mail', ...inherited } },
    ])
  })

  test.each([
    [{ onSuccess: [{ task: 'math.sqaure', input: {} }] }, 'unknown_task', '/onSuccess/0'],
    [{ onEnd: [SQUARE, { ...SQUARE, input: { n: 'x' } }] }, 'invalid_input', '/onEnd/1/input/n'],
    [{ onFailure: [{ ...SQUARE, unique: { key: 'a' } }] }, 'invalid_request', '/onFailure/0/unique'],
    [
      { onFailure: [{ ...SQUARE, onEnd: [{ ...SQUARE, delay: 'soon' }] }] },
      'invalid_request',
      '/onFailure/0/onEnd/0/delay',
    ],
    [{ onEnd: Array.from({ length: 17 }, () => SQUARE) }, 'invalid_request', '/onEnd'],
  ])('is refused with the follow-ups %j', async (followUps, code, pointer) => {
    const { post, broker } = await testApi()
    expect(problemIn(await post({ ...SQUARE, ...followUps }))).toMatchObject({ code, errors: [{ pointer }] })
    expect(broker.enqueued).toEqual([])
  })

  test('has the follow-ups of its definition, and is refused if one of them cannot be made', async () => {
    const note = defineTask({ name: 'note.write', queue: 'notes', input: z.object({ n: z.int() }) })
    const half = defineTask({
      ...{ name: 'math.half', queue: 'math' },
      input: z.object({ n: z.number() }),
      onEnd: (followUp) => [followUp(note, ({ input }) => ({ n: input.n / 2 }))],
    })
    const { post, broker } = await testApi({ catalogue: defineCatalogue(half, note) })
    const called = { onEnd: [{ task: 'note.write', input: { n: 1 } }] }
    expect((await post({ task: 'math.half', input: { n: 4 }, ...called })).statusCode).toBe(202)
    expect(broker.enqueued[0]?.followUps?.map(({ task }) => task.input)).toEqual([{ n: 2 }, { n: 1 }])
    const refused = await post({ task: 'math.half', input: { n: 3 } })
    expect([refused.statusCode, problemIn(refused).code]).toEqual([422, 'invalid_follow_up'])
    expect(broker.enqueued).toHaveLength(1)
  })

  test('is answered with the time at which it is expected to start, if that is known', async () => {
    const { post, broker } = await testApi()
    expect((await post(SQUARE)).json()).not.toHaveProperty('expectedStartAt')
    broker.enqueue = async ({ id }) => ({ id, action: 'created', expectedStartAt: 1_900_000_000_000 })
    expect((await post(SQUARE)).json()).toMatchObject({ expectedStartAt: '2030-03-17T17:46:40.000Z' })
  })

  test('is stored with its input unchanged, because the worker applies defaults and transforms', async () => {
    const { post, broker } = await testApi()
    expect((await post(WELCOME)).statusCode).toBe(202)
    expect(broker.enqueued[0]?.input).toEqual({ to: 'a@example.com' })
  })

  test('is scheduled if it has a delay, and keeps its labels and timeout', async () => {
    const { post, broker } = await testApi()
    const answer = await post({ ...WELCOME, delay: '2h', timeout: '90s', meta: { tenant: 'acme' } })
    expect(answer.json()).toMatchObject({ status: 'scheduled' })
    expect(broker.enqueued[0]).toMatchObject({ delayMs: 7_200_000, timeoutMs: 90_000, meta: { tenant: 'acme' } })
  })

  test('is scheduled for its start time, with its priority, concurrency key and number of attempts', async () => {
    const { post, broker } = await testApi()
    const options = { priority: 3, concurrencyKey: 'acme', retry: { maxAttempts: 1 } }
    const answer = await post({ ...WELCOME, ...options, runAt: new Date(NOW + 5_000).toISOString() })
    expect(answer.json()).toMatchObject({ status: 'scheduled' })
    expect(broker.enqueued[0]).toMatchObject({ delayMs: 5_000, priority: 3, concurrencyKey: 'acme', maxAttempts: 1 })
  })

  test('is refused if it wants more attempts than its definition', async () => {
    const { post, broker } = await testApi()
    const answer = await post({ ...WELCOME, retry: { maxAttempts: 999 } })
    expect(answer.json()).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/retry/maxAttempts' }] })
    expect(broker.enqueued).toEqual([])
  })

  test('may override the backoff of its definition, within the bounds', async () => {
    const { post, broker } = await testApi()
    await post({ ...WELCOME, retry: { backoff: { type: 'fixed', initialDelay: '30s' } } })
    expect(broker.enqueued[0]?.backoff).toEqual({ type: 'fixed', initialMs: 30_000, jitter: 0.2 })
    const early = await post({ ...WELCOME, retry: { backoff: { initialDelay: '1ms' } } })
    expect(early.json()).toMatchObject({
      code: 'invalid_request',
      errors: [
        {
          pointer: '/retry/backoff/initialDelay',
          message: "expected at least '1s' (retry.callBounds.minDelay of email.welcome), got '1ms'",
        },
      ],
    })
    const unknown = await post({ ...WELCOME, retry: { backoff: { base: '1s', jitter: 2 } } })
    expect(unknown.json()).toMatchObject({
      errors: expect.arrayContaining([
        expect.objectContaining({ pointer: '/retry/backoff/jitter' }),
        expect.objectContaining({ pointer: '/retry/backoff/base' }),
      ]),
    })
    expect(broker.enqueued).toHaveLength(1)
  })

  test("has no timeout if that is 'none'", async () => {
    const { post, broker } = await testApi()
    await post({ ...WELCOME, timeout: 'none' })
    expect(broker.enqueued[0]?.timeoutMs).toBe('none')
  })

  test.each([
    ['X-Request-Id', { 'x-request-id': 'order-7' }, 'order-7'],
    [
      'traceparent',
      { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
      '4bf92f3577b34da6a3ce929d0e0e4736',
    ],
  ])("has the caller's %s as its correlation id, which the answer repeats", async (_name, headers, id) => {
    const { post, broker } = await testApi()
    const answer = await post(SQUARE, headers)
    expect(answer.headers['x-request-id']).toBe(id)
    expect(broker.enqueued[0]?.correlationId).toBe(id)
  })

  test('belongs to the trace that the tracing names, rather than to that of the caller’s header', async () => {
    const active = { traceparent: `${TRACE.traceparent.slice(0, 36)}aaaaaaaaaaaaaaaa-01` }
    const { post, broker } = await testApi({ tracing: { current: () => active } })
    await post(SQUARE, TRACE)
    expect(broker.enqueued[0]?.traceContext).toEqual(active)
  })

  test.each(['two words', 'x'.repeat(129), 'ünï'])('ignores an unusable X-Request-Id: %s', async (id) => {
    const { post, broker } = await testApi()
    const answer = await post(SQUARE, { 'x-request-id': id })
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f]{32}$/)
    expect(broker.enqueued[0]?.correlationId).toBeUndefined()
  })
})

describe('a rejected task', () => {
  test('with an unknown name is answered with the nearest one', async () => {
    const { post, broker } = await testApi()
    const problem = problemIn(await post({ task: 'math.sqaure', input: { n: 4 } }))
    expect(problem).toMatchObject({
      status: 422,
      code: 'unknown_task',
      title: 'Unknown task',
      type: '/problems/unknown_task',
    })
    expect(problem.detail).toBe('unknown task "math.sqaure"; did you mean math.square?')
    expect(broker.enqueued).toEqual([])
  })

  test('with an invalid input is answered with every invalid field', async () => {
    const { post } = await testApi()
    const input = { to: 'nobody', lines: [{ text: 'ok' }, { text: 7 }], colour: 'red' }
    const problem = problemIn(await post({ task: 'email.welcome', input }))
    expect(problem).toMatchObject({ status: 422, code: 'invalid_input' })
    expect(problem.errors).toHaveLength(3)
    expect(problem.errors).toContainEqual({
      pointer: '/input/colour',
      message: 'unknown field; expected to, lines, extra, tree',
    })
    expect(problem.errors).toContainEqual({ pointer: '/input/lines/1/text', message: expect.any(String) })
    expect(problem.errors).toContainEqual({ pointer: '/input/to', message: expect.any(String) })
  })

  test.each([
    ['no task', { input: {} }, '/task'],
    ['a task that is not text', { task: 7, input: {} }, '/task'],
    ['an unknown field', { ...SQUARE, priorty: 1 }, '/priorty'],
    ['a delay without a unit', { ...SQUARE, delay: '30' }, '/delay'],
    ['a delay that is a number', { ...SQUARE, delay: 30 }, '/delay'],
    ['a timeout that is no duration', { ...WELCOME, timeout: 'soon' }, '/timeout'],
    ['a timeout on a short task', { ...SQUARE, timeout: '5s' }, '/timeout'],
    ['a total timeout on a short task', { ...SQUARE, totalTimeout: '5s' }, '/totalTimeout'],
    ['a queue timeout on a short task', { ...SQUARE, queueTimeout: '5s' }, '/queueTimeout'],
    ['a heartbeat past its timeout', { ...WELCOME, heartbeatTimeout: '5m', timeout: '1m' }, '/timeout'],
    ['a queue timeout past its total timeout', { ...WELCOME, queueTimeout: '5m', totalTimeout: '3m' }, '/queueTimeout'],
    ['a timeout past its total timeout', { ...WELCOME, timeout: '5m', totalTimeout: '1m' }, '/timeout'],
    ['a unique key that is text', { ...SQUARE, unique: 'k' }, '/unique'],
    ['a unique key without an end', { ...SQUARE, unique: { key: 'k', until: 'soon' } }, '/unique/until'],
    ['a label that is not text', { ...SQUARE, meta: { tenant: 7 } }, '/meta/tenant'],
  ])('with %s is answered with a pointer to the field', async (_name, body, pointer) => {
    const { post, broker } = await testApi()
    const problem = problemIn(await post(body))
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(problem.errors).toEqual([{ pointer, message: expect.any(String) }])
    expect(broker.enqueued).toEqual([])
  })

  test('with an invalid duration is answered with the nearest valid one', async () => {
    const { post } = await testApi()
    expect(problemIn(await post({ ...WELCOME, timeout: '5' })).detail).toMatch(
      /^\/timeout: duration is "5"; expected a .*5s/,
    )
  })

  test('with a timeout for a short task is answered with the reason', async () => {
    const { post } = await testApi()
    expect(problemIn(await post({ ...SQUARE, timeout: '5s' })).detail).toMatch(
      /^\/timeout: math\.square is a short task/,
    )
  })
})

describe('a request with a unique key', () => {
  const UNIQUE = { ...SQUARE, unique: { key: 'k', until: '10m', onConflict: 'error' } }
  const OTHER = 'cpu-01jd3w5zv0abcdefghjkmnpqrs' as TaskId

  test('hands the broker the key, its span and its policy', async () => {
    const { post, broker } = await testApi()
    expect((await post(UNIQUE)).json()).toMatchObject({ action: 'created', status: 'waiting' })
    expect(broker.enqueued[0]?.unique).toEqual({ key: 'k', until: 600_000, onConflict: 'error', maxDelayMs: undefined })
  })

  test.each([
    ['existing', 'active'],
    ['extended', 'scheduled'],
  ] as const)('is answered with the task that has the key: %s', async (action, status) => {
    const { post, broker, events } = await testApi()
    broker.enqueue = async () => ({ id: OTHER, action, status })
    const answer = await post(UNIQUE)
    expect(answer.statusCode).toBe(202)
    expect(answer.json()).toMatchObject({ id: OTHER, action, status, links: { self: `/v1/tasks/${OTHER}` } })
    expect(answer.headers.location).toBe(`/v1/tasks/${OTHER}`)
    expect(events).toEqual([])
  })

  test('is answered without a status if the task that has the key has been deleted', async () => {
    const { post, broker } = await testApi()
    broker.enqueue = async () => ({ id: OTHER, action: 'existing', status: undefined })
    const answer = await post(UNIQUE)
    expect(answer.statusCode).toBe(202)
    expect(answer.json()).toEqual({ id: OTHER, action: 'existing', links: expect.anything() })
  })

  test('counts as an enqueued task if it has replaced another one', async () => {
    const { post, broker, events } = await testApi()
    broker.enqueue = async ({ id }) => ({ id, action: 'replaced' })
    expect((await post(UNIQUE)).json()).toMatchObject({ action: 'replaced', status: 'waiting' })
    expect(events).toMatchObject([{ event: 'task.enqueued' }])
  })

  test('is refused with the id of the task that has the key', async () => {
    const { post, broker } = await testApi()
    broker.enqueue = async (task) => {
      throw uniqueKeyTaken(task, OTHER)
    }
    expect(problemIn(await post(UNIQUE))).toMatchObject({
      status: 409,
      code: 'unique_key_taken',
      title: 'Unique key taken',
      taskId: OTHER,
      detail: expect.stringContaining(`task ${OTHER} has the unique key "k" of math.square`),
    })
  })

  test('is refused if it would extend a delay but has none', async () => {
    const { post, broker } = await testApi()
    const problem = problemIn(await post({ ...SQUARE, unique: { key: 'k', onConflict: 'extend' } }))
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ pointer: '/unique/onConflict' }] })
    expect(broker.enqueued).toEqual([])
  })
})

describe('with Redis down', () => {
  test('the answer contains the id of the task, which may have been stored', async () => {
    const { post, broker } = await testApi()
    broker.trouble = 'down'
    const answer = await post(SQUARE)
    const problem = problemIn(answer)
    expect(problem).toMatchObject({ status: 503, code: 'redis_unavailable' })
    expect(problem).not.toHaveProperty('outcome')
    expect(readTaskId(problem.taskId ?? '')?.id).toBe(problem.taskId as TaskId)
    expect(answer.headers['retry-after']).toBe('1')
  })

  test('the answer says that the request was refused, and has no id of a task, if nothing was sent to Redis', async () => {
    const broker = openBroker({
      redisUrl: 'redis://127.0.0.1:1',
      namespace: 't',
      queues: ['cpu'],
      sizeLimit: 10_000,
      log: { debug() {}, info() {}, warn() {}, error() {} },
    })
    onTestFinished(() => broker.close())
    const { post } = await testApi({ broker })
    for (const headers of [{}, { 'idempotency-key': 'k' }]) {
      const problem = problemIn(await post(SQUARE, headers))
      expect(problem).toMatchObject({ status: 503, code: 'redis_unavailable', outcome: 'refused' })
      expect(problem.taskId).toBeUndefined()
    }
  })

  test('no task is counted as enqueued', async () => {
    const { post, broker, events } = await testApi()
    broker.trouble = 'down'
    await post(SQUARE)
    expect(events).toEqual([])
  })
})

describe('a task that must be replicated', () => {
  test.each(['primary', 'replicated'] as const)('is stored as its request says: %s', async (durability) => {
    const { post, broker } = await testApi()
    expect((await post({ ...SQUARE, durability })).statusCode).toBe(202)
    expect(broker.enqueued).toMatchObject([{ durability }])
  })

  test('is answered with 503 and the id of the stored task if no replica has it, and the call may have had its effect', async () => {
    const { post, broker, events } = await testApi()
    broker.enqueue = async () => {
      throw new BullpenError('not_replicated', 'no replica has it', { taskId: anId })
    }
    const problem = { status: 503, code: 'not_replicated', taskId: anId, detail: 'no replica has it' }
    const wanted = { ...SQUARE, durability: 'replicated' }
    for (const headers of [{}, { 'idempotency-key': 'k' }]) {
      const answer = await post(wanted, headers)
      expect(problemIn(answer)).toMatchObject(problem)
      expect(problemIn(answer)).not.toHaveProperty('outcome')
      expect(answer.headers['retry-after']).toBe('1')
    }
    expect(events).toEqual([])
  })
})

test.each(['incompatible_schema', 'unsupported_redis'] as const)(
  'with the error %s the answer has no id of a task, because none was stored',
  async (code) => {
    const { post, broker } = await testApi()
    broker.enqueue = () => Promise.reject(new BullpenError(code, 'found before anything was sent'))
    const problem = problemIn(await post(SQUARE))
    expect(problem).toMatchObject({ status: 500, code, outcome: 'refused' })
    expect(problem.taskId).toBeUndefined()
  },
)

test('with Redis full the answer has no id of a task, because none was stored', async () => {
  const { post, broker, events } = await testApi()
  broker.trouble = 'full'
  const answer = await post(SQUARE)
  const problem = problemIn(answer)
  expect(problem).toMatchObject({ status: 503, code: 'redis_full' })
  expect(problem.taskId).toBeUndefined()
  expect(answer.headers['retry-after']).toBe('1')
  expect(events).toEqual([])
})

describe('with a full queue', () => {
  test('the answer says which limit was reached and when to try again, and has no id of a task', async () => {
    const { post, broker, events } = await testApi()
    broker.trouble = 'queue full'
    const answer = await post(SQUARE)
    const problem = problemIn(answer)
    expect(problem).toMatchObject({
      status: 429,
      code: 'queue_full',
      title: 'Queue is full',
      detail:
        "queue 'cpu' is full: 1002 tasks are waiting or scheduled, and maxTasks is 1000; the task was not stored, so try again later",
    })
    expect(problem.taskId).toBeUndefined()
    expect(answer.headers).toMatchObject({
      'retry-after': '1',
      'ratelimit-policy': '"queue-tasks";q=1000',
      ratelimit: '"queue-tasks";r=0;t=1',
    })
    expect(answer.headers.location).toBeUndefined()
    expect(events).toEqual([
      { event: 'task.refused', queue: 'cpu', task: 'math.square', limit: 'maxTasks', action: 'rejected' },
    ])
  })

  test('the answer to a task for which there are too few bytes left says how many there are', async () => {
    const { post, broker } = await testApi()
    broker.trouble = 'queue full'
    broker.reached = { queue: 'cpu', limit: 'maxBytes', max: 67_108_864, found: 67_108_000 }
    const answer = await post(SQUARE)
    expect(problemIn(answer)).toMatchObject({
      status: 429,
      detail:
        "queue 'cpu' is full: its unfinished tasks take 67108000 bytes, and this task would exceed maxBytes, which is 64MiB; the task was not stored, so try again later",
    })
    expect(answer.headers).toMatchObject({
      'ratelimit-policy': '"queue-bytes";q=67108864;qu="content-bytes"',
      ratelimit: '"queue-bytes";r=864;t=1',
    })
  })

  test('the broker gets the limits of the definition', async () => {
    const { post, broker } = await testApi()
    await post(SQUARE)
    await post(WELCOME)
    expect(broker.enqueued.map(({ limits }) => limits)).toEqual([undefined, { maxTasks: 500 }])
  })
})

describe('a request with an Idempotency-Key', () => {
  const KEY_HEADER = { 'idempotency-key': '"order-17"' }

  test('hands the broker digests of the key and the body, and the life of the queue', async () => {
    const { post, broker } = await testApi()
    await post(SQUARE, KEY_HEADER)
    await post({ ...SQUARE, delay: '5s' }, KEY_HEADER)
    const [first, second] = broker.enqueued.map(({ idempotency }) => idempotency)
    expect(first).toEqual({
      key: expect.stringMatching(/^[\w-]{22}$/),
      request: expect.stringMatching(/^[\w-]{11}$/),
      life: 86_400,
    })
    expect(second?.key).toBe(first?.key)
    expect(second?.request).not.toBe(first?.request)
  })

  test.each([
    ['"a";life=600', 600],
    ['"a";life=999999', 86_400],
  ])('%s can shorten the life, but not extend it', async (header, life) => {
    const { post, broker } = await testApi()
    await post(SQUARE, { 'idempotency-key': header })
    expect(broker.enqueued[0]?.idempotency?.life).toBe(life)
  })

  test('gets the first response again, marked as replayed, and no second event', async () => {
    const { post, broker, events } = await testApi()
    const first = await post({ ...SQUARE, delay: '1h' }, KEY_HEADER)
    const { id } = first.json<Accepted>()
    broker.enqueue = async () => ({ id: id as TaskId, action: 'created', replayed: { status: 'scheduled' } })
    const again = await post({ ...SQUARE, delay: '1h' }, KEY_HEADER)
    expect([again.statusCode, again.json(), again.headers.location]).toEqual([
      202,
      first.json(),
      first.headers.location,
    ])
    expect([first, again].map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true'])
    expect(events).toHaveLength(1)
  })

  test('gets 503 and a long Retry-After if there is no memory to remember the key', async () => {
    const { post, broker } = await testApi()
    broker.enqueue = async () => {
      throw new BullpenError('idempotency_full', 'idempotency keys take too much memory')
    }
    const answer = await post(SQUARE, KEY_HEADER)
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '60'])
    expect(problemIn(answer)).toMatchObject({ code: 'idempotency_full' })
    // Nothing was stored, so there is nothing to look up.
    expect(problemIn(await post(SQUARE))).not.toHaveProperty('taskId')
  })

  test('gets no task id in a problem, because an earlier request may have stored a task with another id', async () => {
    const { post, broker } = await testApi()
    broker.trouble = 'down'
    expect(problemIn(await post(SQUARE, KEY_HEADER))).not.toHaveProperty('taskId')
    expect(problemIn(await post(SQUARE))).toHaveProperty('taskId')
  })

  test.each(['', '"', 'a b', '"a";x=1'])('that is malformed is rejected: %j', async (header) => {
    const { post, broker } = await testApi()
    const problem = problemIn(await post(SQUARE, { 'idempotency-key': header }))
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ header: 'Idempotency-Key' }] })
    expect(broker.enqueued).toEqual([])
  })
})
