// Tests POST /v1/tasks with a wait for the task to end.
import { request as httpRequest } from 'node:http'
import { BullpenError, type TaskId } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { KEY, KEY_NAME, problemIn, testApi } from '../api.fixture.ts'

const SQUARE = { task: 'math.square', input: { n: 4 } }
const WELCOME = { task: 'email.welcome', input: { to: 'a@example.com' } }

type Api = Awaited<ReturnType<typeof testApi>>

const enqueue = ({ ask }: Api, query: string, body: object = SQUARE, headers: Record<string, string> = {}) =>
  ask({
    method: 'POST',
    url: `/v1/tasks${query}`,
    headers: { 'content-type': 'application/json', ...headers },
    payload: JSON.stringify(body),
  })

const idOf = ({ broker }: Api): TaskId => broker.enqueued[0]?.id ?? expect.fail('no task was enqueued')

/** Sends the request over a real connection, which the returned function closes. */
async function enqueueAndDisconnect(api: Api, query: string, body: object, more = {}): Promise<() => void> {
  await api.app.listen({ host: '127.0.0.1', port: 0 })
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...more }
  const caller = httpRequest(`${api.app.listeningOrigin}/v1/tasks${query}`, { method: 'POST', headers })
  caller.on('error', () => {})
  caller.end(JSON.stringify(body))
  await api.broker.firstWaiter
  return () => caller.destroy()
}

describe('an enqueue that waits', () => {
  test.each([
    ['?wait=10s', {}],
    ['?wait=10', {}],
    ['', { prefer: 'wait=10' }],
  ])('is answered with the task as soon as it ends: %s %j', async (query, headers) => {
    const api = await testApi()
    const answer = enqueue(api, query, SQUARE, headers)
    await api.broker.firstWaiter
    api.broker.change(idOf(api), { status: 'active' })
    api.broker.change(idOf(api), { status: 'completed', output: { value: 16 } })
    const { statusCode, headers: sent, ...rest } = await answer
    expect(statusCode).toBe(200)
    expect(rest.json()).toMatchObject({ id: idOf(api), status: 'completed', output: { value: 16 } })
    expect(sent.location).toBe(`/v1/tasks/${idOf(api)}`)
  })

  test('is answered with the id and the current status if the task has not ended in time', async () => {
    const api = await testApi()
    const answer = enqueue(api, '?wait=0.2')
    await api.broker.firstWaiter
    api.broker.change(idOf(api), { status: 'active' })
    const { statusCode, ...rest } = await answer
    expect(statusCode).toBe(202)
    expect(rest.json()).toMatchObject({ id: idOf(api), action: 'created', status: 'active' })
    expect(api.broker.waiting).toBe(0)
  })

  test('is answered with the id although Redis fails during the wait, because the task is stored', async () => {
    const api = await testApi()
    api.broker.waitUntilFinished = () =>
      Promise.reject(new BullpenError('incompatible_schema', 'found during the wait'))
    const { statusCode, ...rest } = await enqueue(api, '?wait=10s')
    expect(statusCode).toBe(202)
    expect(rest.json()).toMatchObject({ id: idOf(api), action: 'created', status: 'waiting' })
    expect(api.lines.map((line) => line.message)).toContain('end of an enqueued task could not be awaited')
  })

  test('is answered at once while the API closes', async () => {
    const api = await testApi()
    const answer = enqueue(api, '?wait=30s')
    await api.broker.firstWaiter
    api.closing.abort()
    expect((await answer).json()).toMatchObject({ action: 'created', status: 'waiting' })
  })

  test.each([
    ['?wait=31s', 'wait'],
    ['?wait=soon', 'wait'],
    ['?wait=1s&onDisconnect=stop', 'onDisconnect'],
    ['?onDisconnect=cancel', 'onDisconnect'],
    ['?wiat=1s', 'wiat'],
  ])('with %s is rejected, and nothing is stored', async (query, parameter) => {
    const api = await testApi()
    const problem = problemIn(await enqueue(api, query))
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ parameter }] })
    expect(api.broker.enqueued).toEqual([])
  })
})

describe('a caller that disconnects during the wait', () => {
  test.each(['', '&onDisconnect=continue'])('ends only the wait by default: %j', async (option) => {
    const api = await testApi()
    const disconnect = await enqueueAndDisconnect(api, `?wait=30s${option}`, SQUARE)
    disconnect()
    await expect.poll(() => api.broker.waiting).toBe(0)
    expect(await api.broker.find(idOf(api))).toMatchObject({ status: 'waiting' })
    expect(api.broker.cancelledBy).toEqual([])
  })

  test('cancels the task with onDisconnect=cancel, and the cancellation is recorded', async () => {
    const api = await testApi()
    const disconnect = await enqueueAndDisconnect(api, '?wait=30s&onDisconnect=cancel', WELCOME)
    disconnect()
    await expect.poll(async () => (await api.broker.find(idOf(api)))?.status).toBe('cancelled')
    expect(api.broker.cancelledBy).toEqual([`a caller that disconnected (${KEY_NAME})`])
    expect(api.events).toContainEqual({
      event: 'task.cancelled',
      queue: 'mail',
      task: 'email.welcome',
      id: idOf(api),
    })
  })

  test('cancels the task although the task cannot be read at the end of the wait', async () => {
    const api = await testApi()
    const { waitUntilFinished } = api.broker
    api.broker.waitUntilFinished = async (id, signal) => {
      await waitUntilFinished(id, signal)
      throw new BullpenError('redis_unavailable', 'Redis did not respond')
    }
    const disconnect = await enqueueAndDisconnect(api, '?wait=30s&onDisconnect=cancel', WELCOME)
    disconnect()
    await expect.poll(async () => (await api.broker.find(idOf(api)))?.status).toBe('cancelled')
  })

  test('cancels the task if the wait is in the Prefer header', async () => {
    const api = await testApi()
    const disconnect = await enqueueAndDisconnect(api, '?onDisconnect=cancel', WELCOME, { prefer: 'wait=30' })
    disconnect()
    await expect.poll(async () => (await api.broker.find(idOf(api)))?.status).toBe('cancelled')
  })

  test('does not cancel a task that another request had created', async () => {
    const api = await testApi()
    const { enqueue: store } = api.broker
    api.broker.enqueue = async (task) => ({ ...(await store(task)), action: 'existing' })
    const disconnect = await enqueueAndDisconnect(api, '?wait=30s&onDisconnect=cancel', WELCOME)
    disconnect()
    await expect.poll(() => api.broker.waiting).toBe(0)
    expect(api.broker.cancelledBy).toEqual([])
  })

  test('is reported in the log if Redis is unreachable and the task cannot be cancelled', async () => {
    const api = await testApi()
    const disconnect = await enqueueAndDisconnect(api, '?wait=30s&onDisconnect=cancel', WELCOME)
    api.broker.cancel = () => Promise.reject(new Error('Redis is unreachable'))
    disconnect()
    const message = 'task of a disconnected caller could not be cancelled'
    await expect.poll(() => api.lines.map((line) => line.message)).toContain(message)
  })
})
