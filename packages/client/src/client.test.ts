// Tests the client against a real HTTP server whose responses each test defines.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { defineTask, milliseconds, type OutputOf, type TaskView } from '@bullpen/contract'
import { readIdempotencyKey, taskViewSchema } from '@bullpen/contract/internal'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { type Client, createClient, http, ProblemError, ResultTimeoutError, TaskEndedError } from './index.ts'
import { type Answer, api, closeAfterTest, problem } from './server.fixture.ts'

/** The schemas are taken from the contract, because the client does not depend on zod. */
const count = defineTask({
  name: 'task.count',
  queue: 'cpu',
  input: taskViewSchema.pick({ fencingToken: true, queue: true }).partial({ queue: true }),
  output: taskViewSchema.pick({ attemptsMade: true }),
})

const ID = 'cpu-01jd3v7n8q0000000000000000'
const ACCEPTED = {
  id: ID,
  action: 'created',
  status: 'waiting',
  links: { self: `/v1/tasks/${ID}`, cancel: `/v1/tasks/${ID}/cancel` },
}

const AT = '2026-01-01T00:00:00.000Z'

function view(more: Partial<TaskView> = {}): TaskView {
  return {
    id: ID,
    task: 'task.count',
    version: 1,
    queue: 'cpu',
    status: 'completed',
    fencingToken: 1,
    attemptsMade: 1,
    maxAttempts: 5,
    priority: 0,
    input: { fencingToken: 4 },
    output: { attemptsMade: 16 },
    meta: {},
    tags: [],
    enqueuedAt: AT,
    attempts: [],
    links: ACCEPTED.links,
    ...more,
  } as TaskView
}

describe('enqueue', () => {
  test('sends the task with the API key, the correlation id and the options', async () => {
    const { client, seen } = await api([[202, ACCEPTED]], { correlationId: 'order-7' })
    const accepted = await client.enqueue(
      count,
      { fencingToken: 4 },
      {
        meta: { a: 'b' },
        tags: ['x'],
        delay: '5s',
        timeout: 'none',
      },
    )
    expect(accepted).toMatchObject(ACCEPTED)
    expect(seen).toMatchObject([
      {
        method: 'POST',
        url: '/v1/tasks',
        headers: { authorization: 'Bearer k', 'x-request-id': 'order-7', 'content-type': 'application/json' },
        body: {
          task: 'task.count',
          input: { fencingToken: 4 },
          meta: { a: 'b' },
          tags: ['x'],
          delay: '5s',
          timeout: 'none',
        },
      },
    ])
  })

  test('enqueueNamed takes a name instead of a definition', async () => {
    const { client, seen } = await api([[202, ACCEPTED]])
    expect(await client.enqueueNamed('task.other', [1], { queueTimeout: '1m' })).toMatchObject(ACCEPTED)
    expect(seen[0]?.body).toEqual({ task: 'task.other', input: [1], queueTimeout: '1m' })
  })

  test('cancelMany sends the filter, and cancellation reports its progress', async () => {
    const pending = {
      ...{ id: 'cpu-1', queue: 'cpu', enqueuedUntil: AT, by: 'key 3fa29c01', status: 'pending', ended: 0 },
      ...{ requestedAt: AT, links: { self: '/v1/cancels/cpu-1' } },
    }
    const { client, seen } = await api([
      [202, pending],
      [200, { ...pending, status: 'done' }],
    ])
    expect(await client.cancelMany({ queue: 'cpu', tag: 'x', olderThan: '1h' })).toEqual(pending)
    expect(await client.cancellation('cpu-1')).toEqual({ ...pending, status: 'done' })
    expect(seen.map(({ method, url, body }) => [`${method} ${url}`, body])).toEqual([
      ['POST /v1/tasks/cancel', { queue: 'cpu', tag: 'x', olderThan: '1h' }],
      ['GET /v1/cancels/cpu-1', undefined],
    ])
  })

  test('previewCancel asks how many tasks match, and cancels none', async () => {
    const preview = { queue: 'cpu', matching: 3, exact: true, enqueuedUntil: AT }
    const { client, seen } = await api([[200, preview]])
    expect(await client.previewCancel({ queue: 'cpu', tag: 'x' })).toEqual(preview)
    expect(seen).toMatchObject([
      { method: 'POST', url: '/v1/tasks/cancel?dryRun=true', body: { queue: 'cpu', tag: 'x' } },
    ])
  })

  test('cancel sends the name of the requester, and waits for the given time', async () => {
    const cancelled = { id: ID, outcome: 'cancelled', status: 'cancelled', links: ACCEPTED.links }
    const { client, seen } = await api([
      [200, cancelled],
      [200, cancelled],
    ])
    expect(await client.cancel(ID)).toEqual(cancelled)
    await client.cancel(ID, { wait: '5s', by: 'ann' })
    expect(seen.map(({ method, url, body }) => [`${method} ${url}`, body])).toEqual([
      [`POST /v1/tasks/${ID}/cancel`, undefined],
      [`POST /v1/tasks/${ID}/cancel?wait=5`, { by: 'ann' }],
    ])
  })

  test('keeps a path prefix of the URL', async () => {
    const { url, seen } = await api([[202, ACCEPTED]])
    await createClient({ transport: http(`${url}/bullpen`, 'k') }).enqueue(count, { fencingToken: 4 })
    expect(seen[0]?.url).toBe('/bullpen/v1/tasks')
  })

  test('rejects with the problem that the API returned and with the invalid fields', async () => {
    const errors = [{ pointer: '/input/fencingToken', message: 'too big' }]
    const { client } = await api([
      problem('invalid_input', 422, { detail: 'task.count refuses it', errors, requestId: 'r-1' }),
    ])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      name: 'ProblemError',
      code: 'invalid_input',
      outcome: 'refused',
      status: 422,
      requestId: 'r-1',
      detail: 'task.count refuses it',
      errors,
      message: 'invalid_input: task.count refuses it: /input/fencingToken: too big',
    })
  })

  test('a field that the detail already contains is not repeated in the message', () => {
    const errors = [{ pointer: '/input/cents', message: 'Too small' }]
    const problem = new ProblemError({ code: 'invalid_input', detail: '/input/cents: Too small', errors })
    expect(problem.message).toBe('invalid_input: /input/cents: Too small')
    expect(problem.errors).toEqual(errors)
  })

  test.each<[string, Answer]>([
    ['its response is lost', 'break'],
    ['Redis is unavailable', problem('redis_unavailable', 503)],
    ['Redis is unavailable, and the task may have been stored', problem('redis_unavailable', 503, { taskId: ID })],
    ['Redis is full', problem('redis_full', 503)],
    ['no replica has the task', problem('not_replicated', 503)],
    ['the API shuts down', problem('shutting_down', 503)],
    ['a proxy has lost its API', [502, '<html>']],
    ['a proxy has no API', [503, '<html>']],
    ['a proxy gets no response', [504, '']],
  ])('is repeated with the same key and body if %s', async (_, failure) => {
    const { client, seen } = await api([failure, failure, [202, ACCEPTED]])
    expect(await client.enqueue(count, { fencingToken: 4 }, { runAt: new Date(0) })).toMatchObject(ACCEPTED)
    expect(seen).toHaveLength(3)
    const [first] = seen
    expect(first?.headers['idempotency-key']).toMatch(/^"[0-9a-f]{32}";life=600$/)
    for (const { body, headers } of seen) {
      expect(body).toEqual(first?.body)
      expect(headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
    }
  })

  test('has a key of its own in each call', async () => {
    const { client, seen } = await api([[202, ACCEPTED]])
    for (let i = 0; i < 3; i++) await client.enqueue(count, { fencingToken: 4 })
    expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(3)
  })

  test.each([
    ['order 17', '"order 17"'],
    ['say "hi" \\', '"say \\"hi\\" \\\\"'],
  ])('sends the idempotency key %s of the caller', async (idempotencyKey, header) => {
    const { client, seen } = await api([[202, ACCEPTED]])
    await client.enqueue(count, { fencingToken: 4 }, { idempotencyKey })
    expect(seen[0]?.headers['idempotency-key']).toBe(header)
    expect(seen[0]?.body).not.toHaveProperty('idempotencyKey')
    expect(readIdempotencyKey(header)).toEqual({ key: idempotencyKey, life: undefined })
  })

  test.each([
    ['10m', {}, 620],
    ['2h', { whenFull: { block: '1500ms' } }, 7_225],
    ['1s', { idempotencyLife: '2s' }, 21],
    ['1s', { idempotencyLife: '1h' }, 3_600],
  ] as const)(
    'that is repeated for %s with %j has a key that is remembered for longer',
    async (retryFor, options, life) => {
      const { client, seen } = await api(
        [
          [202, ACCEPTED],
          [200, { failed: 0, results: [ACCEPTED] }],
        ],
        { retryFor },
      )
      await client.enqueue(count, { fencingToken: 4 }, options)
      await client.enqueueBulk(count, [{ fencingToken: 4 }], options)
      for (const { headers } of seen) expect(headers['idempotency-key']).toMatch(new RegExp(`";life=${life}$`))
      expect(seen).toHaveLength(2)
    },
  )

  test.each(['', 'ä', 'a\n', 'x'.repeat(256)])('is not sent with the idempotency key %j', async (idempotencyKey) => {
    const { client, seen } = await api([[202, ACCEPTED]])
    await expect(client.enqueue(count, { fencingToken: 4 }, { idempotencyKey })).rejects.toMatchObject({
      code: 'invalid_request',
      outcome: 'refused',
      errors: [{ parameter: 'idempotencyKey', message: expect.stringContaining('expected 1 to 255 printable ASCII') }],
    })
    expect(seen).toEqual([])
  })

  test('is not repeated if there is no memory for idempotency keys, because the API asks for a longer wait', async () => {
    const [status, body] = problem('idempotency_full', 503)
    const { client, seen } = await api([
      [status, body, { 'retry-after': '60' }],
      [202, ACCEPTED],
    ])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'idempotency_full',
      outcome: 'refused',
      retryAfterMs: 60_000,
    })
    expect(seen).toHaveLength(1)
  })

  test('is not repeated while the queue drains, because it stays closed until it is resumed', async () => {
    const { client, seen } = await api([problem('queue_draining', 503), [202, ACCEPTED]])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'queue_draining',
      outcome: 'refused',
    })
    expect(seen.length).toBe(1)
  })

  test('is repeated while the connection is refused', async () => {
    const { url, server, client } = await api([])
    const port = Number(new URL(url).port)
    server.close()
    const later = closeAfterTest(createServer((_, response) => response.writeHead(202).end(JSON.stringify(ACCEPTED))))
    const accepted = client.enqueue(count, { fencingToken: 4 })
    setTimeout(() => later.listen(port), 150)
    expect(await accepted).toMatchObject(ACCEPTED)
  })
})

test.each(['30ms', '350ms'] as const)('a call is repeated until %s are over', async (retryFor) => {
  const { client, seen } = await api(['break'], { retryFor })
  const began = performance.now()
  await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({ code: 'unreachable' })
  expect(performance.now() - began).toBeGreaterThanOrEqual(milliseconds(retryFor))
  expect(seen.length).toBeGreaterThan(1)
})

describe('an enqueue into a full queue', () => {
  const full = problem('queue_full', 429, { detail: 'the queue is full' })

  test('is rejected, and not repeated', async () => {
    const { client, seen } = await api([full])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'queue_full',
      outcome: 'refused',
    })
    expect(seen.length).toBe(1)
  })

  test('returns no id if the caller lets the task be dropped, and is otherwise rejected', async () => {
    const { client } = await api([[200, { action: 'dropped' }]])
    const dropped = await client.enqueue(count, { fencingToken: 4 }, { whenFull: 'drop' })
    expectTypeOf(dropped.id).toEqualTypeOf<string | undefined>()
    expect(dropped).toEqual({ action: 'dropped' })
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'queue_full',
      outcome: 'refused',
      detail: expect.stringContaining("pass whenFull: 'drop'"),
      retryAfterMs: 1_000,
    })
  })

  test('may wait for room for longer than the request timeout', async () => {
    const { client } = await api(['silence'], { requestTimeout: '20ms', retryFor: '1ms' })
    const began = performance.now()
    const waiting = client.enqueue(count, { fencingToken: 4 }, { whenFull: { block: '100ms' } })
    await expect(waiting).rejects.toMatchObject({ code: 'unreachable', detail: expect.stringContaining('120 ms') })
    expect(performance.now() - began).toBeGreaterThan(110)
  })
})

describe('an enqueue by name, whose queue may have any policy', () => {
  const calls: readonly (readonly [string, (client: Client) => Promise<unknown>])[] = [
    ['enqueueNamed', (client) => client.enqueueNamed('task.count', {})],
    ['enqueueBulkNamed', (client) => client.enqueueBulkNamed([{ task: 'task.count', input: {} }])],
  ]
  /** A server that responds after three times the request timeout of its client. */
  async function slowApi() {
    const answering = createServer((request, response) => {
      const body = request.url?.endsWith('/bulk') ? { failed: 0, results: [{ action: 'dropped' }] } : ACCEPTED
      setTimeout(() => response.writeHead(202).end(JSON.stringify(body)), 150)
    })
    const server = closeAfterTest(answering).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return createClient({ transport: http(url, 'k', { requestTimeout: '50ms' }), retryFor: '1ms' })
  }

  test.each(calls)('may wait for room for longer than the request timeout: %s', async (_, call) => {
    const client = await slowApi()
    await expect(call(client)).resolves.toBeDefined()
    // The client knows that this queue does not make callers wait.
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({ code: 'unreachable' })
  })
})

describe('the error of an enqueue', () => {
  const failed = (client: Client): Promise<unknown> =>
    client.enqueue(count, { fencingToken: 4 }).then(
      () => expect.unreachable(),
      (error: unknown) => error,
    )

  test('says that nothing was sent if the connection was always refused, and names the cause', async () => {
    const { server, client } = await api([], { retryFor: '200ms' })
    server.close()
    expect(await failed(client)).toMatchObject({
      name: 'ProblemError',
      code: 'unreachable',
      outcome: 'refused',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  test.each<[string, Answer, object]>([
    ['the response was lost', 'break', { code: 'unreachable', status: undefined, cause: expect.any(Error) }],
    ['the API did not respond in time', 'silence', { code: 'unreachable' }],
    ['a proxy responded', [503, '<html>'], { code: 'unexpected_response', status: 503 }],
    ['the response is not JSON', [202, '<html>'], { code: 'unexpected_response', status: 202 }],
    ['a login page responded in JSON', [200, { login: '/portal' }], { code: 'unexpected_response', status: 200 }],
    ['the API failed', problem('internal_error', 500), { code: 'internal_error', status: 500 }],
    [
      'the API lost the reply of Redis',
      problem('redis_unavailable', 503, { taskId: ID, requestId: 'r-1' }),
      { code: 'redis_unavailable', taskId: ID, requestId: 'r-1' },
    ],
  ])('says that the outcome is unknown if %s', async (_, failure, expected) => {
    const requestTimeout = failure === 'silence' ? '50ms' : '10s'
    const { client } = await api([failure], { requestTimeout, retryFor: '1ms' })
    expect(await failed(client)).toMatchObject({ outcome: 'unknown', ...expected })
  })

  test('says that the outcome is unknown if an earlier try may have stored the task', async () => {
    const { client, seen } = await api(['break', problem('queue_draining', 503, { detail: 'it drains' })])
    expect(await failed(client)).toMatchObject({
      code: 'queue_draining',
      outcome: 'unknown',
      status: 503,
      message: 'queue_draining: it drains',
    })
    expect(seen.length).toBe(2)
  })

  test('says that the call was refused if the API knows that no try had an effect, and repeats it with the same key', async () => {
    const unsent = problem('redis_unavailable', 503, { outcome: 'refused' })
    const { client, seen } = await api([unsent], { retryFor: '150ms' })
    expect(await failed(client)).toMatchObject({ code: 'redis_unavailable', outcome: 'refused' })
    expect(seen.length).toBeGreaterThan(1)
    expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    const { client: other } = await api([problem('redis_unavailable', 503), unsent], { retryFor: '150ms' })
    expect(await failed(other)).toMatchObject({ outcome: 'unknown' })
  })

  test.each<[string, Answer]>([
    ['a problem with the status 413', problem('payload_too_large', 413)],
    ['a 404 from another server', [404, '<html>']],
    ['a unique key of another task', problem('unique_key_taken', 409, { taskId: ID })],
    ['a Redis that may delete tasks', problem('unsafe_redis', 503)],
  ])('says that a call with %s was refused', async (_, failure) => {
    const { client, seen } = await api([failure])
    expect(await failed(client)).toMatchObject({ outcome: 'refused' })
    expect(seen.length).toBe(1)
  })
})

describe('an operation that changes something', () => {
  test('is repeated if repeating has no further effect', async () => {
    const cancelled = { id: ID, outcome: 'cancelled', status: 'cancelled', links: ACCEPTED.links }
    const { client, seen } = await api(['break', problem('redis_unavailable', 503), [200, cancelled]])
    expect(await client.cancel(ID)).toEqual(cancelled)
    expect(seen.length).toBe(3)
  })

  test('is otherwise repeated only if it had no effect', async () => {
    const { client, seen } = await api([problem('shutting_down', 503), 'break', [202, {}]])
    await expect(client.cancelMany({ queue: 'cpu' })).rejects.toMatchObject({ code: 'unreachable', outcome: 'unknown' })
    expect(seen.length).toBe(2)
  })
})

describe('a handle', () => {
  test('waits for the task, describes and cancels it', async () => {
    const cancelled = { id: ID, outcome: 'cancelling', status: 'active', links: ACCEPTED.links }
    const { client, seen } = await api([
      [202, ACCEPTED],
      [200, view({ status: 'active', output: undefined })],
      [200, cancelled],
      [200, view()],
      [200, view()],
    ])
    const task = await client.enqueue(count, { fencingToken: 4 })
    const described = await task.describe()
    expectTypeOf(described.input).toEqualTypeOf<{ fencingToken: number; queue?: string | undefined }>()
    expect(described.status).toBe('active')
    expect(await task.cancel({ by: 'ann' })).toEqual(cancelled)
    const { output } = await task.waitUntilFinished({ timeout: '1m' })
    expectTypeOf(output).toEqualTypeOf<{ attemptsMade: number } | undefined>()
    const result = await task.result()
    expectTypeOf(result).toEqualTypeOf<{ attemptsMade: number }>()
    expect([output, result]).toEqual([{ attemptsMade: 16 }, { attemptsMade: 16 }])
    expect(seen.slice(1).map(({ method, url }) => `${method} ${url}`)).toEqual([
      `GET /v1/tasks/${ID}`,
      `POST /v1/tasks/${ID}/cancel`,
      `GET /v1/tasks/${ID}?wait=30`,
      `GET /v1/tasks/${ID}?wait=30`,
    ])
  })

  test('is the response of the API as JSON', async () => {
    const { client } = await api([[202, ACCEPTED]])
    expect(JSON.parse(JSON.stringify(await client.enqueue(count, { fencingToken: 4 })))).toEqual(ACCEPTED)
  })
})

describe('task', () => {
  test('is looked up again after a broken connection and after a 503', async () => {
    const { client, seen } = await api(['break', problem('redis_unavailable', 503), [200, view()]])
    expect(await client.task(count, ID)).toEqual(view())
    expect(seen.map(({ url }) => url)).toEqual(Array(3).fill(`/v1/tasks/${ID}`))
  })

  test('is looked up again only after the time that the API asks the client to wait', async () => {
    const [status, body] = problem('redis_unavailable', 503)
    const { client } = await api([
      [status, body, { 'retry-after': '1' }],
      [200, view()],
    ])
    const before = performance.now()
    await client.task(count, ID)
    expect(performance.now() - before).toBeGreaterThan(990)
  })

  test('is not looked up again when it does not exist', async () => {
    const { client, seen } = await api([problem('task_not_found', 404)])
    await expect(client.task(count, 'a/b?c')).rejects.toMatchObject({ code: 'task_not_found', status: 404 })
    expect(seen.map(({ url }) => url)).toEqual(['/v1/tasks/a%2Fb%3Fc'])
  })

  test('is rejected if it belongs to another definition, and returned if no definition is given', async () => {
    const { client } = await api([[200, view({ task: 'task.other' })]])
    await expect(client.task(count, ID)).rejects.toThrow(
      `task ${ID} belongs to the definition task.other, not to task.count`,
    )
    expect((await client.task(ID)).task).toBe('task.other')
  })

  test('has the types of its definition', async () => {
    const { client } = await api([
      [200, view()],
      [200, view()],
      [202, ACCEPTED],
    ])
    const task = await client.task(count, ID)
    expectTypeOf(task.task).toEqualTypeOf<'task.count'>()
    expectTypeOf(task.input).toEqualTypeOf<{ fencingToken: number; queue?: string | undefined }>()
    expectTypeOf(task.output).toEqualTypeOf<{ attemptsMade: number } | undefined>()
    expectTypeOf(await client.task(ID)).toEqualTypeOf<TaskView>()
    // @ts-expect-error: the input is the definition's.
    await client.enqueue(count, { fencingToken: '4' })
    // @ts-expect-error: a duration has a unit.
    await client.enqueue(count, { fencingToken: 4 }, { delay: '5' }).catch(() => undefined)
  })
})

describe('result', () => {
  test('asks the API to wait until the task has ended', async () => {
    const { client, seen } = await api([
      [200, view({ status: 'active', output: undefined })],
      [200, view({ status: 'retrying', output: undefined })],
      [200, view()],
    ])
    const output = await client.result(count, ID)
    expectTypeOf(output).toEqualTypeOf<OutputOf<typeof count>>()
    expect(output).toEqual({ attemptsMade: 16 })
    expect(seen.map(({ url }) => url)).toEqual(Array(3).fill(`/v1/tasks/${ID}?wait=30`))
  })

  test.each([
    [{ status: 'dead', error: { code: 'not_found', message: '/x' } } as const, 'not_found', 'is dead: not_found: /x'],
    [{ status: 'cancelled' } as const, 'cancelled', 'is cancelled'],
    [{ status: 'expired' } as const, 'expired', 'is expired'],
  ])('of a task that ended as %j is an error', async (ended, code, message) => {
    const { client } = await api([[200, view({ output: undefined, ...ended })]])
    const error = await client.result(count, ID).catch((caught) => caught)
    expect(error).toBeInstanceOf(TaskEndedError)
    expect(error).toMatchObject({ code, task: { id: ID, ...ended }, message: `task ${ID} ${message}` })
  })

  test('is awaited until the timeout, or until the signal aborts', async () => {
    const { client } = await api(['silence'])
    const error = await client.result(count, ID, { timeout: '50ms' }).catch((caught) => caught)
    expect(error).toBeInstanceOf(ResultTimeoutError)
    expect(error).toMatchObject({ name: 'ResultTimeoutError', id: ID, message: `task ${ID} did not end within 50ms` })
    const reason = new Error('enough')
    const stop = new AbortController()
    setTimeout(() => stop.abort(reason), 50)
    await expect(client.result(count, ID, { timeout: '1h', signal: stop.signal })).rejects.toBe(reason)
  })
})

describe('list', () => {
  test('follows the pages', async () => {
    const { client, seen } = await api([
      [200, { tasks: [view(), view()], next: 'c&1' }],
      [200, { tasks: [], next: 'c2' }],
      [200, { tasks: [view()] }],
    ])
    const tasks: TaskView[] = []
    for await (const task of client.list({ queue: 'cpu', status: 'dead', pageSize: 2 })) tasks.push(task)
    expect(tasks).toEqual(Array(3).fill(view()))
    expect(seen.map(({ url }) => url)).toEqual([
      '/v1/tasks?queue=cpu&status=dead&limit=2',
      '/v1/tasks?queue=cpu&status=dead&limit=2&cursor=c%261',
      '/v1/tasks?queue=cpu&status=dead&limit=2&cursor=c2',
    ])
  })

  test('requests only the pages that are read', async () => {
    const { client, seen } = await api([[200, { tasks: [view(), view()], next: 'more' }]])
    for await (const task of client.list({ queue: 'cpu', status: 'dead' })) if (task.id === ID) break
    expect(seen.length).toBe(1)
  })
})

test('a response that is not from a Bullpen API is rejected with its first characters', async () => {
  const { client, url } = await api([[200, `<html>${'x'.repeat(200)}`]])
  const begins = `begins with ${JSON.stringify(`<html>${'x'.repeat(94)}`)}…`
  await expect(client.task(count, ID)).rejects.toMatchObject({
    code: 'unexpected_response',
    status: 200,
    outcome: 'refused',
    detail: `GET ${url}: the HTTP 200 response is not one that a Bullpen API sends; it ${begins}; check the API's address and version, and any proxy in front of it`,
  })
})

const foreign: readonly (readonly [string, (client: Client) => Promise<unknown>, 'unknown' | 'refused'])[] = [
  ['enqueue', (client) => client.enqueue(count, { fencingToken: 4 }), 'unknown'],
  ['enqueueNamed', (client) => client.enqueueNamed('task.count', {}), 'unknown'],
  ['enqueueBulk', (client) => client.enqueueBulk(count, [{ fencingToken: 4 }]), 'unknown'],
  ['cancel', (client) => client.cancel(ID), 'unknown'],
  ['cancelMany', (client) => client.cancelMany({ queue: 'cpu' }), 'unknown'],
  ['command', (client) => client.command({ action: 'pause', queue: 'cpu' }), 'unknown'],
  ['task', (client) => client.task(ID), 'refused'],
  ['result', (client) => client.result(count, ID), 'refused'],
  ['previewCancel', (client) => client.previewCancel({ queue: 'cpu' }), 'refused'],
  ['cancellation', (client) => client.cancellation('cpu-1'), 'refused'],
  ['list', (client) => client.list({ queue: 'cpu', status: 'dead' }).next(), 'refused'],
  ['fleet', (client) => client.fleet(), 'refused'],
  ['pools', (client) => client.pools(), 'refused'],
  ['slots', (client) => client.slots(), 'refused'],
  ['commands', (client) => client.commands(), 'refused'],
  ['commandById', (client) => client.commandById('once-1'), 'refused'],
]

test.each(foreign)('%s accepts no other JSON than the response of a Bullpen API', async (_, call, outcome) => {
  for (const body of [{}, [], null, 'ok', { id: 1 }, { status: 'success' }]) {
    const text = JSON.stringify(body)
    const { client, seen } = await api([[200, text]])
    const detail = expect.stringContaining(`it begins with ${JSON.stringify(text)}`)
    await expect(call(client)).rejects.toMatchObject({ code: 'unexpected_response', status: 200, outcome, detail })
    expect(seen).toHaveLength(1)
  }
})

test('an invalid URL is rejected', () => {
  const wrong = expect.objectContaining({ code: 'invalid_configuration' })
  expect(() => http('localhost:8080', 'k')).toThrow(wrong)
  for (const url of ['http://ann:hunter2@127.0.0.1', 'http//ann:hunter2@127.0.0.1', 'ftp://ann:hunter2@127.0.0.1']) {
    expect(() => http(url, 'k')).toThrow(wrong)
    expect(() => http(url, 'k')).toThrow(/^(?!.*hunter2)/s)
  }
  for (const url of ['http://127.0.0.1/?key=hunter2', 'http://127.0.0.1/bullpen#hunter2']) {
    expect(() => http(url, 'k')).toThrow(wrong)
    expect(() => http(url, 'k')).toThrow(/^the API's URL contains a query or a fragment(?!.*hunter2)/s)
  }
  expect(new ProblemError({ code: 'unreachable' }).message).toBe('unreachable')
})
