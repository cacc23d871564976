// Tests commands to the fleet over HTTP: sent, waited for, looked up, and logged for the audit.
import type { CommandPage, CommandView } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { KEY, KEY_NAME, NOW, problemIn, testApi } from '../api.fixture.ts'
import { P1 } from '../fake-fleet.fixture.ts'

const PAUSE = { action: 'pause', queue: 'cpu' }

async function commandApi() {
  const api = await testApi()
  const send = (payload: object, query = '?wait=0') => api.ask({ method: 'POST', url: `/v1/commands${query}`, payload })
  const audit = () => api.lines.filter(({ message }) => message === 'fleet command sent')
  return { ...api, send, audit }
}

describe('a command', () => {
  test('is sent to its workers, and returned when they have responded', async () => {
    const { send, fleet, audit } = await commandApi()
    fleet.put({})
    const sent = send({ ...PAUSE, id: 'once-1', by: 'ann' }, '')
    await fleet.firstWaiter
    expect(audit()).toEqual([])
    await fleet.respond('once-1', { worker: P1, outcome: 'done', detail: 'paused', at: NOW + 7 })
    const response = await sent
    expect(response.statusCode).toBe(200)
    expect(response.json()).toEqual({
      ...{ id: 'once-1', spec: PAUSE, by: `ann (${KEY_NAME})`, at: new Date(NOW).toISOString(), outcome: 'done' },
      responses: [{ worker: P1, outcome: 'done', detail: 'paused', at: new Date(NOW + 7).toISOString() }],
    })
    const requestId = response.headers['x-request-id']
    const fields = { command: 'once-1', spec: PAUSE, by: `ann (${KEY_NAME})`, outcome: 'done', requestId }
    expect(audit()).toEqual([{ level: 'info', fields, message: 'fleet command sent' }])
    expect(JSON.stringify([response.json(), audit()])).not.toContain(KEY.slice(0, 8))
  })

  test('has defaults, an id and a requester', async () => {
    const { send, fleet } = await commandApi()
    fleet.put({})
    const { id, spec, by } = (await send({ action: 'drain', worker: P1 })).json<CommandView>()
    expect({ spec: spec, by }).toEqual({
      spec: { action: 'drain', mode: 'soft_timeout', worker: P1 },
      by: KEY_NAME,
    })
    expect(id).toMatch(/^[0-9a-f]{24}$/)
  })

  test('that the workers have not responded to in time is pending and can be looked up', async () => {
    const { send, get, fleet, audit } = await commandApi()
    fleet.put({})
    const sent = (await send({ ...PAUSE, id: 'once-1' }, '?wait=0.01')).json<CommandView>()
    expect(sent).toMatchObject({ outcome: 'pending', responses: [{ worker: P1, outcome: 'pending' }] })
    expect(audit()).toMatchObject([{ fields: { outcome: 'pending' } }])
    expect((await get('/v1/commands/once-1')).json()).toEqual(sent)
    const waiting = get('/v1/commands/once-1?wait=5')
    await fleet.firstWaiter
    await fleet.respond('once-1', { worker: P1, outcome: 'refused', detail: 'no such pool', at: NOW })
    expect((await waiting).json()).toMatchObject({ outcome: 'refused', responses: [{ detail: 'no such pool' }] })
  })

  test('that only changes a queue, or has no live workers, is done at once', async () => {
    const { send, fleet } = await commandApi()
    fleet.put({})
    const limit = { action: 'limit', queue: 'cpu', concurrency: 'none', rate: { max: 10, per: '1s' } }
    expect((await send(limit)).json()).toMatchObject({ spec: limit, outcome: 'done', responses: [] })
    expect((await send({ action: 'drain', queue: 'mail' })).json()).toMatchObject({ outcome: 'done', responses: [] })
  })

  test('with a repeated id is idempotent, but is rejected if it contains a different request', async () => {
    const { send, fleet } = await commandApi()
    const first = await send({ ...PAUSE, id: 'once-1' })
    expect((await send({ ...PAUSE, id: 'once-1' })).json()).toEqual(first.json())
    const other = await send({ action: 'resume', queue: 'cpu', id: 'once-1' })
    expect(problemIn(other)).toMatchObject({ status: 422, code: 'command_id_reused' })
    expect(await fleet.commands(10)).toHaveLength(1)
  })

  test('that is stored is logged even if its responses cannot be read', async () => {
    const { send, fleet, audit } = await commandApi()
    fleet.put({})
    fleet.trouble = 'deaf'
    expect(problemIn(await send({ ...PAUSE, id: 'once-1' }, ''))).toMatchObject({ code: 'redis_unavailable' })
    expect(audit()).toMatchObject([{ fields: { command: 'once-1', outcome: 'pending' } }])
  })

  test.each([
    ['for an unknown queue', { action: 'pause', queue: 'cpv' }, 'queue_not_found', 'did you mean cpu?'],
    ['for an unknown worker', { action: 'drain', worker: 'p' }, 'worker_not_found', 'p'],
    ['for a worker without heartbeats', { action: 'drain', worker: 'silent' }, 'worker_not_found', 'silent'],
    [
      'with an unknown action',
      { action: 'explode', queue: 'cpu' },
      'invalid_request',
      'action: expected pause, resume, drain',
    ],
    ['without a target', { action: 'pause' }, 'invalid_request', 'queue: specify queue, worker, or both'],
    ['with an unknown field', { ...PAUSE, slot: 1 }, 'invalid_request', 'slot: unknown field'],
    ['that is a list', [PAUSE], 'invalid_request', 'the body must be a JSON object'],
  ])('%s is rejected, and not logged', async (_name, body, code, detail) => {
    const { send, fleet, audit } = await commandApi()
    fleet.put({ worker: 'silent', seenAt: NOW - 60_000 })
    expect(problemIn(await send(body))).toMatchObject({ code, detail: expect.stringContaining(detail) })
    expect(await fleet.commands(10)).toEqual([])
    expect(audit()).toEqual([])
  })

  test('is rejected without a key, with a wait over 30 s, and while Redis is down', async () => {
    const { app, send, fleet } = await commandApi()
    expect((await app.inject({ method: 'POST', url: '/v1/commands', payload: PAUSE })).statusCode).toBe(401)
    expect(problemIn(await send(PAUSE, '?wait=31'))).toMatchObject({ code: 'invalid_request' })
    fleet.trouble = 'down'
    expect(problemIn(await send(PAUSE))).toMatchObject({ status: 503, code: 'redis_unavailable' })
  })
})

describe('the audit log', () => {
  test('lists the newest commands first', async () => {
    const { send, get } = await commandApi()
    for (const id of ['a', 'b', 'c']) await send({ ...PAUSE, id })
    const ids = async (query: string) =>
      (await get(`/v1/commands${query}`)).json<CommandPage>().commands.map(({ id }) => id)
    expect(await ids('')).toEqual(['c', 'b', 'a'])
    expect(await ids('?limit=2')).toEqual(['c', 'b'])
    expect(problemIn(await get('/v1/commands?limit=201'))).toMatchObject({ code: 'invalid_request' })
  })

  test.each(['nothing', 'no id!', 'x'.repeat(65)])('returns 404 for the command %s', async (id) => {
    const { get } = await commandApi()
    const response = await get(`/v1/commands/${encodeURIComponent(id)}`)
    expect(problemIn(response)).toMatchObject({ status: 404, code: 'command_not_found' })
  })
})

test('a task for a draining queue is rejected, with the time of the next try', async () => {
  const { post, broker } = await testApi()
  broker.trouble = 'drains'
  const response = await post({ task: 'math.square', input: { n: 4 } })
  expect(problemIn(response)).toMatchObject({ status: 503, code: 'queue_draining' })
  expect(response.headers['retry-after']).toBe('1')
  expect(response.json()).not.toHaveProperty('taskId')
})
