// Tests looking up a task and waiting for it to end.
import { request as httpRequest } from 'node:http'
import { describe, expect, test } from 'vitest'
import { anId, KEY, problemIn, testApi } from '../api.fixture.ts'

const url = `/v1/tasks/${anId}`

describe('a task', () => {
  test('is shown in its current state', async () => {
    const { get, broker } = await testApi()
    broker.put({ id: anId })
    const answer = await get(url)
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toMatchObject({ id: anId, status: 'waiting', input: { n: 4 } })
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
    })
  })

  test('says what it waits for, even if the time of a wait is over', async () => {
    const { get, broker } = await testApi()
    broker.put({ id: anId, queue: 'cpu' })
    broker.reason = { kind: 'paused', since: 0, by: 'ann' }
    const text = 'queue cpu to be resumed (paused by ann since 1970-01-01T00:00:00.000Z)'
    const waitsFor = { kind: 'paused', since: '1970-01-01T00:00:00.000Z', by: 'ann', text }
    for (const path of [url, `${url}?wait=0.05`]) expect((await get(path)).json()).toMatchObject({ waitsFor })
  })

  test.each([
    ['that does not exist', url],
    ['with a malformed id', '/v1/tasks/17'],
    ['of an unknown queue', url.replace('cpu-', 'gpu-')],
  ])('%s is a 404', async (_name, path) => {
    const { get } = await testApi()
    expect(problemIn(await get(path))).toMatchObject({ status: 404, code: 'task_not_found' })
    expect(problemIn(await get(`${path}?wait=1`))).toMatchObject({ status: 404, code: 'task_not_found' })
  })

  test('cannot be shown while Redis is down', async () => {
    const { get, broker } = await testApi()
    broker.trouble = 'down'
    for (const path of [url, `${url}?wait=5`]) {
      const problem = problemIn(await get(path))
      expect(problem).toMatchObject({ status: 503, code: 'redis_unavailable' })
      expect(problem).not.toHaveProperty('taskId')
    }
  })
})

describe('a wait for the end of a task', () => {
  test.each([
    ['?wait=30', {}],
    ['', { prefer: 'wait=30' }],
  ])('is answered as soon as the task ends %s %j', async (query, headers) => {
    const { get, broker } = await testApi()
    broker.put({ id: anId })
    const answer = get(`${url}${query}`, headers)
    await broker.firstWaiter
    broker.change(anId, { status: 'active' })
    broker.change(anId, { status: 'completed', output: { value: 16 } })
    expect((await answer).json()).toMatchObject({ status: 'completed', output: { value: 16 } })
  })

  test('is answered with the current state of the task when the time is up', async () => {
    const { get, broker } = await testApi()
    broker.put({ id: anId })
    expect((await get(`${url}?wait=0.05`)).json()).toMatchObject({ status: 'waiting' })
    expect(broker.waiting).toBe(0)
  })

  test('is answered at once while the API closes', async () => {
    const { get, broker, closing } = await testApi()
    broker.put({ id: anId })
    const answer = get(`${url}?wait=30`)
    await broker.firstWaiter
    closing.abort()
    expect((await answer).json()).toMatchObject({ status: 'waiting' })
    expect((await get(`${url}?wait=30`)).json()).toMatchObject({ status: 'waiting' })
  })

  test('fails if Redis stops answering', async () => {
    const { get, broker } = await testApi()
    broker.put({ id: anId })
    const answer = get(`${url}?wait=0.1`)
    await broker.firstWaiter
    broker.trouble = 'hangs'
    expect(problemIn(await answer)).toMatchObject({ status: 503, code: 'redis_unavailable' })
  })

  test('ends when the caller disconnects', async () => {
    const { app, broker } = await testApi()
    broker.put({ id: anId })
    await app.listen({ host: '127.0.0.1', port: 0 })
    const caller = httpRequest(`${app.listeningOrigin}${url}?wait=30`, { headers: { authorization: `Bearer ${KEY}` } })
    caller.on('error', () => {})
    caller.end()
    await broker.firstWaiter
    expect(broker.waiting).toBe(1)
    caller.destroy()
    await expect.poll(() => broker.waiting).toBe(0)
  })

  test.each(['31', '-1', 'soon', '1e9', 'NaN'])('of wait=%s is rejected with the accepted values', async (wait) => {
    const { get } = await testApi()
    const problem = problemIn(await get(`${url}?wait=${wait}`))
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(problem.errors).toEqual([
      { parameter: 'wait', message: "expected a duration such as '10s', or a number of seconds, from 0 to 30 s" },
    ])
  })

  test('with a misspelt parameter is rejected', async () => {
    const { get } = await testApi()
    expect(problemIn(await get(`${url}?wiat=3`)).errors).toEqual([
      { parameter: 'wiat', message: 'unknown parameter; did you mean wait?' },
    ])
  })
})

describe('a preferred wait', () => {
  test.each([
    ['wait=7', 'wait=7'],
    ['respond-async, wait=7;x=1', 'wait=7'],
    ['wait="7"', 'wait=7'],
    ['x="a, wait=9", wait=7', 'wait=7'],
    ['wait=100000', 'wait=30'],
    ['wait=0', 'wait=0'],
  ])('%s is applied', async (prefer, applied) => {
    const { get, broker } = await testApi()
    broker.put({ id: anId, status: 'completed' })
    expect((await get(url, { prefer })).headers['preference-applied']).toBe(applied)
  })

  test.each(['respond-async', 'wait=soon', 'wait=-1', 'wait', 'await=3'])('%s is ignored', async (prefer) => {
    const { get, broker } = await testApi()
    broker.put({ id: anId })
    const answer = await get(url, { prefer })
    expect(answer.statusCode).toBe(200)
    expect(answer.headers['preference-applied']).toBeUndefined()
  })
})
