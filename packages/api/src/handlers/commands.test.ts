// Tests commands to the fleet over HTTP: given, waited for, looked up, and written down.
import type { CommandPage, CommandView } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { KEY, NOW, problemIn, testApi } from '../api.fixture.ts'
import { P1 } from '../fake-fleet.fixture.ts'

const PRINT = '(key 0813ba6d)'
const PAUSE = { action: 'pause', queue: 'cpu' }

async function commanding() {
  const api = await testApi()
  const send = (payload: object, query = '?wait=0') => api.ask({ method: 'POST', url: `/v1/commands${query}`, payload })
  const audit = () => api.lines.filter(({ message }) => message === 'command to the fleet')
  return { ...api, send, audit }
}

describe('a command', () => {
  test('is given to the workers that it is for, and answered when they have answered', async () => {
    const { send, fleet, audit } = await commanding()
    fleet.put({})
    const sent = send({ ...PAUSE, id: 'once-1', by: 'ann' }, '')
    await fleet.firstWaiter
    expect(audit()).toEqual([])
    await fleet.answer('once-1', { worker: P1, outcome: 'done', detail: 'paused', at: NOW + 7 })
    const answer = await sent
    expect(answer.statusCode).toBe(200)
    expect(answer.json()).toEqual({
      ...{ id: 'once-1', spec: PAUSE, by: `ann ${PRINT}`, at: new Date(NOW).toISOString(), outcome: 'done' },
      answers: [{ worker: P1, outcome: 'done', detail: 'paused', at: new Date(NOW + 7).toISOString() }],
    })
    const requestId = answer.headers['x-request-id']
    const fields = { command: 'once-1', spec: PAUSE, by: `ann ${PRINT}`, outcome: 'done', requestId }
    expect(audit()).toEqual([{ level: 'info', fields, message: 'command to the fleet' }])
    expect(JSON.stringify([answer.json(), audit()])).not.toContain(KEY.slice(0, 8))
  })

  test.each([
    [{ action: 'drain', queue: 'mail' }, 1],
    [{ action: 'drain', queue: 'mail', mode: 'soft' }, 1],
    [{ action: 'drain', queue: 'mail', mode: 'hard' }, 1],
    [{ action: 'drain', queue: 'mail', mode: 'light' }, 0],
    [{ action: 'drain', queue: 'mail', worker: P1 }, 0],
    [{ action: 'drain', worker: P1 }, 0],
    [{ action: 'drain', queue: 'cpu' }, 0],
    [{ action: 'pause', queue: 'mail' }, 0],
  ])('%j ends what waits in the queue, where that says so: %i', async (order, times) => {
    const { send, fleet, broker } = await commanding()
    fleet.put({})
    expect((await send({ ...order, by: 'ann' })).statusCode).toBe(200)
    const rule = { queue: 'mail', before: NOW, reason: 'queue_shutdown', by: `ann ${PRINT}` }
    expect(broker.cancels.map((each) => each.rule)).toMatchObject(Array.from({ length: times }, () => rule))
  })

  test('that ended what waits ends nothing when it is given again after the queue was resumed', async () => {
    const { send, fleet, broker } = await commanding()
    fleet.put({})
    const drain = { action: 'drain', queue: 'mail', id: 'once-1' }
    await send(drain)
    await send({ action: 'resume', queue: 'mail' })
    expect((await send(drain)).statusCode).toBe(200)
    expect(broker.cancels).toHaveLength(1)
  })

  test('that ends what waits is written down, and can be given again, when Redis goes away before it has', async () => {
    const { send, fleet, broker, audit } = await commanding()
    fleet.put({})
    const drain = { action: 'drain', queue: 'mail', id: 'once-1' }
    broker.trouble = 'down'
    expect((await send(drain)).statusCode).toBe(503)
    broker.trouble = 'none'
    expect((await send(drain)).statusCode).toBe(200)
    expect([broker.cancels.length, audit().length]).toEqual([1, 2])
  })

  test('has defaults, an id and an author without being told', async () => {
    const { send, fleet } = await commanding()
    fleet.put({})
    const { id, spec, by } = (await send({ action: 'drain', worker: P1 })).json<CommandView>()
    expect({ spec: spec, by }).toEqual({
      spec: { action: 'drain', mode: 'soft_timeout', worker: P1 },
      by: PRINT.slice(1, -1),
    })
    expect(id).toMatch(/^[0-9a-f]{24}$/)
  })

  test('whose answers do not come in time is pending, and can be looked at again', async () => {
    const { send, get, fleet, audit } = await commanding()
    fleet.put({})
    const sent = (await send({ ...PAUSE, id: 'once-1' }, '?wait=0.01')).json<CommandView>()
    expect(sent).toMatchObject({ outcome: 'pending', answers: [{ worker: P1, outcome: 'pending' }] })
    expect(audit()).toMatchObject([{ fields: { outcome: 'pending' } }])
    expect((await get('/v1/commands/once-1')).json()).toEqual(sent)
    const waiting = get('/v1/commands/once-1?wait=5')
    await fleet.firstWaiter
    await fleet.answer('once-1', { worker: P1, outcome: 'refused', detail: 'no such pool', at: NOW })
    expect((await waiting).json()).toMatchObject({ outcome: 'refused', answers: [{ detail: 'no such pool' }] })
  })

  test("for nobody but the queue itself is done at once, and so is one for a queue's fleet that is empty", async () => {
    const { send, fleet } = await commanding()
    fleet.put({})
    const limit = { action: 'limit', queue: 'cpu', concurrency: 'none', rate: { max: 10, per: '1s' } }
    expect((await send(limit)).json()).toMatchObject({ spec: limit, outcome: 'done', answers: [] })
    expect((await send({ action: 'drain', queue: 'mail' })).json()).toMatchObject({ outcome: 'done', answers: [] })
  })

  test('that is sent again is the same, and with another order it is refused', async () => {
    const { send, fleet } = await commanding()
    const first = await send({ ...PAUSE, id: 'once-1' })
    expect((await send({ ...PAUSE, id: 'once-1' })).json()).toEqual(first.json())
    const other = await send({ action: 'resume', queue: 'cpu', id: 'once-1' })
    expect(problemIn(other)).toMatchObject({ status: 422, code: 'command_id_reused' })
    expect(await fleet.commands(10)).toHaveLength(1)
  })

  test('that was kept is written down also where its answers can not be read', async () => {
    const { send, fleet, audit } = await commanding()
    fleet.put({})
    fleet.trouble = 'deaf'
    expect(problemIn(await send({ ...PAUSE, id: 'once-1' }, ''))).toMatchObject({ code: 'redis_unavailable' })
    expect(audit()).toMatchObject([{ fields: { command: 'once-1', outcome: 'pending' } }])
  })

  test.each([
    ['to a queue that there is not', { action: 'pause', queue: 'cpv' }, 'queue_not_found', "did you mean 'cpu'?"],
    ['to a worker that there is not', { action: 'drain', worker: 'p' }, 'worker_not_found', 'p'],
    ['to a silent worker', { action: 'drain', worker: 'silent' }, 'worker_not_found', 'silent'],
    ['of no kind', { action: 'explode', queue: 'cpu' }, 'invalid_request', 'action: it is pause, resume, drain'],
    ['to nobody', { action: 'pause' }, 'invalid_request', 'queue: name a queue, a worker, or both'],
    ['with a field too much', { ...PAUSE, slot: 1 }, 'invalid_request', 'slot: unknown field'],
    ['that is a list', [PAUSE], 'invalid_request', 'the body is a JSON object'],
  ])('%s is refused, and not written down', async (_name, body, code, told) => {
    const { send, fleet, audit } = await commanding()
    fleet.put({ worker: 'silent', seenAt: NOW - 60_000 })
    expect(problemIn(await send(body))).toMatchObject({ code, detail: expect.stringContaining(told) })
    expect(await fleet.commands(10)).toEqual([])
    expect(audit()).toEqual([])
  })

  test('needs a key, a short wait and Redis', async () => {
    const { app, send, fleet } = await commanding()
    expect((await app.inject({ method: 'POST', url: '/v1/commands', payload: PAUSE })).statusCode).toBe(401)
    expect(problemIn(await send(PAUSE, '?wait=31'))).toMatchObject({ code: 'invalid_request' })
    fleet.trouble = 'down'
    expect(problemIn(await send(PAUSE))).toMatchObject({ status: 503, code: 'redis_unavailable' })
  })
})

describe('the audit', () => {
  test('lists the newest commands first', async () => {
    const { send, get } = await commanding()
    for (const id of ['a', 'b', 'c']) await send({ ...PAUSE, id })
    const ids = async (query: string) =>
      (await get(`/v1/commands${query}`)).json<CommandPage>().commands.map(({ id }) => id)
    expect(await ids('')).toEqual(['c', 'b', 'a'])
    expect(await ids('?limit=2')).toEqual(['c', 'b'])
    expect(problemIn(await get('/v1/commands?limit=201'))).toMatchObject({ code: 'invalid_request' })
  })

  test.each(['nothing', 'no id!', 'x'.repeat(65)])('knows no command %s', async (id) => {
    const { get } = await commanding()
    const answer = await get(`/v1/commands/${encodeURIComponent(id)}`)
    expect(problemIn(answer)).toMatchObject({ status: 404, code: 'command_not_found' })
  })
})

test('a task of a queue that drains is refused, with the time to come back', async () => {
  const { post, broker } = await testApi()
  broker.trouble = 'drains'
  const answer = await post({ task: 'math.square', input: { n: 4 } })
  expect(problemIn(answer)).toMatchObject({ status: 503, code: 'queue_draining' })
  expect(answer.headers['retry-after']).toBe('1')
  expect(answer.json()).not.toHaveProperty('taskId')
})
