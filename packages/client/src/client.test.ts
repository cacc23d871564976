// Tests the client against a real HTTP server whose responses each test defines.
import { createServer } from 'node:http'
import { defineTask, type OutputOf, type TaskView } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { createClient, ProblemError, TaskEndedError } from './index.ts'
import { api, problem, servers } from './server.fixture.ts'

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
    enqueuedAt: '2026-01-01T00:00:00.000Z',
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
    expect(accepted).toEqual(ACCEPTED)
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
    expect(await client.enqueueNamed('task.other', [1], { queueTimeout: '1m' })).toEqual(ACCEPTED)
    expect(seen[0]?.body).toEqual({ task: 'task.other', input: [1], queueTimeout: '1m' })
  })

  test('cancelMany sends the filter, and cancellation reports its progress', async () => {
    const pending = { id: 'cpu-1', status: 'pending' }
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
    const preview = { queue: 'cpu', matching: 3, exact: true, enqueuedUntil: '2026-01-01T00:00:00.000Z' }
    const { client, seen } = await api([[200, preview]])
    expect(await client.previewCancel({ queue: 'cpu', tag: 'x' })).toEqual(preview)
    expect(seen).toMatchObject([
      { method: 'POST', url: '/v1/tasks/cancel?dryRun=true', body: { queue: 'cpu', tag: 'x' } },
    ])
  })

  test('cancel sends the name of the requester, and waits for the given time', async () => {
    const cancelled = { id: ID, outcome: 'cancelled', status: 'cancelled', links: {} }
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

  test('keeps a path prefix of the base URL', async () => {
    const { baseUrl, seen } = await api([[202, ACCEPTED]])
    await createClient({ baseUrl: `${baseUrl}/bullpen`, key: 'k' }).enqueue(count, { fencingToken: 4 })
    expect(seen[0]?.url).toBe('/bullpen/v1/tasks')
  })

  test('rejects with the problem that the API returned and with the invalid fields', async () => {
    const errors = [{ pointer: '/input/fencingToken', message: 'too big' }]
    const { client } = await api([problem('invalid_input', 422, { detail: 'task.count refuses it', errors })])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      name: 'ProblemError',
      code: 'invalid_input',
      status: 422,
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

  test('is not repeated if the answer is lost, because the task may be stored', async () => {
    const { client, seen } = await api(['break', [202, ACCEPTED]])
    const error = await client.enqueue(count, { fencingToken: 4 }).catch((caught) => caught)
    expect(error).toMatchObject({ code: 'unreachable', status: undefined, cause: expect.any(TypeError) })
    expect(seen.length).toBe(1)
  })

  test('is not repeated after a 503 with a task id, and the error contains this id', async () => {
    const { client, seen } = await api([problem('redis_unavailable', 503, { taskId: ID }), [202, ACCEPTED]])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'redis_unavailable',
      taskId: ID,
    })
    expect(seen.length).toBe(1)
  })

  test('is not repeated after a 503 that is not from the API', async () => {
    const { client, seen } = await api([
      [503, '<html>'],
      [202, ACCEPTED],
    ])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'unexpected_response',
      status: 503,
    })
    expect(seen.length).toBe(1)
  })

  test('is repeated after a 503 without a task id, because nothing was stored', async () => {
    const { client, seen } = await api([problem('shutting_down', 503), [202, ACCEPTED]])
    expect(await client.enqueue(count, { fencingToken: 4 })).toEqual(ACCEPTED)
    expect(seen.length).toBe(2)
  })

  test('is not repeated while the queue drains, because it stays closed until it is resumed', async () => {
    const { client, seen } = await api([problem('queue_draining', 503), [202, ACCEPTED]])
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({ code: 'queue_draining' })
    expect(seen.length).toBe(1)
  })

  test('is repeated while the connection is refused', async () => {
    const { baseUrl } = await api([])
    const port = Number(new URL(baseUrl).port)
    servers[0]?.close()
    const accepted = createClient({ baseUrl, key: 'k' }).enqueue(count, { fencingToken: 4 })
    setTimeout(() => {
      servers.push(createServer((_, response) => response.writeHead(202).end(JSON.stringify(ACCEPTED))).listen(port))
    }, 150)
    expect(await accepted).toEqual(ACCEPTED)
  })

  test('gives up if the API stays unreachable, and names the cause', async () => {
    const { baseUrl } = await api([])
    servers[0]?.close()
    const { enqueue } = createClient({ baseUrl, key: 'k', retryFor: '200ms' })
    await expect(enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  test('gives up if the API does not answer', async () => {
    const { client, seen } = await api(['silence'], { requestTimeout: '50ms' })
    await expect(client.enqueue(count, { fencingToken: 4 })).rejects.toMatchObject({ code: 'unreachable' })
    expect(seen.length).toBe(1)
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
    await expect(client.task(count, ID)).rejects.toThrow(`task ${ID} is a task.other task, not a task.count task`)
    expect((await client.task(ID)).task).toBe('task.other')
  })

  test('has the types of its definition', async () => {
    const { client } = await api([[200, view()]])
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
    await expect(client.result(count, ID, { timeout: '50ms' })).rejects.toMatchObject({ name: 'TimeoutError' })
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

test('an answer that is not from a Bullpen API is rejected, and so is an invalid base URL', async () => {
  const { client } = await api([[200, '<html>']])
  await expect(client.task(count, ID)).rejects.toMatchObject({ code: 'unexpected_response', status: 200 })
  const wrong = expect.objectContaining({ code: 'invalid_configuration' })
  expect(() => createClient({ baseUrl: 'localhost:8080', key: 'k' })).toThrow(wrong)
  expect(new ProblemError({ code: 'unreachable' }).message).toBe('unreachable')
})
