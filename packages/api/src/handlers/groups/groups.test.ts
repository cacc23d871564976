// Tests the routes for groups: what they accept, what they refuse, and what they return.
import { BullpenError } from '@bullpen/contract'
import { createGroupId, errorAt } from '@bullpen/contract/internal'
import { expect, it, vi } from 'vitest'
import { KEY_NAME, NOW, problemIn, testApi } from '../../api.fixture.ts'

const id = createGroupId(NOW, new Uint8Array(10))
const square = (n: unknown) => ({ task: 'math.square', input: { n } })

async function setup() {
  const api = await testApi()
  const send = async (path: string, body?: unknown, headers = {}) =>
    api.ask({
      method: 'POST',
      url: `/v1/groups${path}`,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
  return { ...api, send }
}

it('POST /v1/groups creates a group with its first members, and seals it', async () => {
  const { send, events, lines } = await setup()
  const response = await send('', { tasks: [square(1), square(2)], onError: 'cancel', by: 'ann' })
  expect(response.statusCode).toBe(201)
  const group = response.json()
  expect(response.headers['location']).toBe(`/v1/groups/${group.id}`)
  expect(group).toMatchObject({
    state: 'sealed',
    count: 2,
    ended: 0,
    progress: 0,
    statuses: { completed: 0, dead: 0, cancelled: 0, expired: 0, removed: 0 },
    queues: ['cpu'],
    onError: 'cancel',
    by: `ann (${KEY_NAME})`,
    links: { results: `/v1/groups/${group.id}/results` },
  })
  expect(group).not.toHaveProperty('result')
  expect(events).toMatchObject([{ event: 'task.enqueued' }, { event: 'task.enqueued' }])
  expect(lines).toContainEqual(expect.objectContaining({ message: 'group created' }))
})

it('members are enqueued with their group, the request’s correlation id and trace, and derived ids', async () => {
  const { send, broker, get } = await setup()
  await send('', { id, seal: false })
  const traceContext = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' }
  const added = await send(`/${id}/tasks`, { tasks: [square(3)] }, { 'x-request-id': 'c-1', ...traceContext })
  expect(added.statusCode).toBe(202)
  const { start, count, ids } = added.json()
  expect({ start, count }).toEqual({ start: 0, count: 1 })
  await expect.poll(() => broker.enqueued).toHaveLength(1)
  expect(broker.enqueued[0]).toMatchObject({ id: ids[0], group: { id, member: 0 }, correlationId: 'c-1', traceContext })
  expect((await get(`/v1/groups/${id}/results`)).json()).toMatchObject({
    results: [{ member: 0, id: ids[0], task: 'math.square', status: 'waiting' }],
  })
})

it('a repeated request with the same Idempotency-Key adds nothing, and a different one is refused', async () => {
  const { send, get } = await setup()
  await send('', { id })
  const key = { 'idempotency-key': '"k"' }
  const first = await send(`/${id}/tasks`, { tasks: [square(1)] }, key)
  expect((await send(`/${id}/tasks`, { tasks: [square(1)] }, key)).json()).toEqual(first.json())
  expect((await get(`/v1/groups/${id}`)).json()).toMatchObject({ count: 1, state: 'open' })
  const other = await send(`/${id}/tasks`, { tasks: [square(2)] }, key)
  expect(problemIn(other)).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
})

it('POST /v1/groups with an id is idempotent, also with members', async () => {
  const { send } = await setup()
  const body = { id, tasks: [square(1)] }
  await send('', body)
  expect((await send('', body)).json()).toMatchObject({ id, count: 1, state: 'sealed' })
})

it('POST /v1/groups with the id of a group that has other settings or tasks is refused', async () => {
  const { send, get } = await setup()
  await send('', { id, tasks: [square(1)], seal: false })
  for (const other of [{ tasks: [square(2)], seal: false }, { onError: 'cancel' }, { onEnd: [square(1)] }]) {
    const problem = problemIn(await send('', { id, ...other }))
    expect(problem).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
    expect(problem.detail).toContain(`group ${id} already exists`)
  }
  expect((await get(`/v1/groups/${id}`)).json()).toMatchObject({ count: 1, onError: 'continue', state: 'open' })
})

it('POST /v1/groups refuses an Idempotency-Key, which would not make it idempotent', async () => {
  const { send, get } = await setup()
  const problem = problemIn(await send('', { tasks: [square(1)] }, { 'idempotency-key': '"k"' }))
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request', errors: [{ header: 'Idempotency-Key' }] })
  expect((await get('/v1/groups')).json()).toEqual({ groups: [] })
})

it('the pointer of a member that is too large names the member', async () => {
  const { send, broker } = await setup()
  await send('', { id })
  const tooLarge = errorAt(new BullpenError('payload_too_large', 'the task would take 300000 bytes'), '/1')
  vi.spyOn(broker.groups, 'add').mockRejectedValueOnce(tooLarge)
  const problem = problemIn(await send(`/${id}/tasks`, { tasks: [square(1), square(2)] }))
  expect(problem).toMatchObject({ status: 413, code: 'payload_too_large', errors: [{ pointer: '/tasks/1' }] })
  expect(problem.detail).toBe('/tasks/1: the task would take 300000 bytes')
})

it('a request that creates a group with an invalid member creates no group', async () => {
  const { send, get } = await setup()
  expect(problemIn(await send('', { id, tasks: [square(1), square('x')] }))).toMatchObject({ code: 'invalid_input' })
  expect(problemIn(await get(`/v1/groups/${id}`))).toMatchObject({ code: 'group_not_found' })
})

it('a request whose members are not all valid adds none, and names each of them', async () => {
  const { send, get } = await setup()
  await send('', { id })
  const tasks = [square(1), square('x'), { task: 'math.cube', input: {} }, { ...square(2), unique: { key: 'k' } }]
  const problem = problemIn(await send(`/${id}/tasks`, { tasks }))
  expect(problem).toMatchObject({ status: 422, code: 'invalid_input' })
  const found = ['/tasks/1/input/n', '/tasks/3/unique'].map((pointer) => expect.objectContaining({ pointer }))
  expect(problem.errors).toEqual(expect.arrayContaining(found))
  expect((await get(`/v1/groups/${id}`)).json()).toMatchObject({ count: 0 })
})

it.each([
  [{ totalTimeout: '31d' }, '/totalTimeout'],
  [{ keep: '1h' }, '/keep'],
  [{ onError: 'stop' }, '/onError'],
  [{ tasks: [] }, '/tasks'],
  [{ tasks: [null] }, '/tasks/0'],
  [{ by: 'ann\nroot' }, '/by'],
  [{ id: 'cpu-01jd3v7n8q0000000000000000' }, '/id'],
])('POST /v1/groups refuses %j', async (body, pointer) => {
  const { send } = await setup()
  const problem = problemIn(await send('', body))
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(problem.errors).toEqual([expect.objectContaining({ pointer })])
})

it.each(['999d', '31d', '10ms', '0s'])(
  'the problem of the total timeout %j names the accepted range',
  async (totalTimeout) => {
    const { send } = await setup()
    const message = `duration is "${totalTimeout}"; expected a duration from '1s' to '30d'`
    expect(problemIn(await send('', { totalTimeout })).errors).toEqual([{ pointer: '/totalTimeout', message }])
  },
)

it('the problem of a member says what the member itself accepts', async () => {
  const { send } = await setup()
  const { errors = [] } = problemIn(await send('', { tasks: [7, { ...square(1), colour: 'red' }] }))
  expect(errors[0]).toEqual({
    pointer: '/tasks/0',
    message: 'expected a JSON object such as {"task":"email.welcome","input":{}}',
  })
  const { pointer, message } = errors[1] as { readonly pointer: string; readonly message: string }
  expect(pointer).toBe('/tasks/1/colour')
  expect(message).toMatch(/^unknown field; expected task, input, /)
  expect(message).not.toMatch(/unique|whenFull|durability/)
})

it('a full queue refuses the members of a request together', async () => {
  const { send, broker, events } = await setup()
  await send('', { id })
  broker.trouble = 'queue full'
  expect(problemIn(await send(`/${id}/tasks`, { tasks: [square(1), square(2)] }))).toMatchObject({
    status: 429,
    code: 'queue_full',
  })
  expect(events).toMatchObject([
    { event: 'task.refused', action: 'rejected' },
    { event: 'task.refused', action: 'rejected' },
  ])
})

it('a group whose first members are refused is not created, so that its follow-ups do not run', async () => {
  const { send, broker, events } = await setup()
  const create = vi.spyOn(broker.groups, 'create')
  broker.trouble = 'queue full'
  const refused = problemIn(await send('', { tasks: [square(1)], onEnd: [square(2)] }))
  expect(refused).toMatchObject({ status: 429, code: 'queue_full' })
  expect(create).not.toHaveBeenCalled()
  expect(events).toMatchObject([{ event: 'task.refused', action: 'rejected' }])
})

it('a repeated request whose members are stored needs no room for them', async () => {
  const { send, broker } = await setup()
  const body = { id, tasks: [square(1)] }
  await send('', body)
  broker.trouble = 'queue full'
  expect((await send('', body)).json()).toMatchObject({ id, count: 1 })
})

it('a problem says that the request had no effect only if its group was not created', async () => {
  const { send, get, broker } = await setup()
  const draining = new BullpenError('queue_draining', "queue 'cpu' is draining")
  vi.spyOn(broker.groups, 'admit').mockRejectedValueOnce(draining)
  expect(problemIn(await send('', { id, tasks: [square(1)] })).outcome).toBe('refused')
  expect((await get(`/v1/groups/${id}`)).statusCode).toBe(404)
  vi.spyOn(broker.groups, 'add').mockRejectedValueOnce(draining)
  const late = problemIn(await send('', { id, tasks: [square(1)] }))
  expect(late).toMatchObject({ status: 503, code: 'queue_draining' })
  expect(late.outcome).toBeUndefined()
  expect((await get(`/v1/groups/${id}`)).json()).toMatchObject({ state: 'open', count: 0 })
})

it('a group whose first members are refused after it was created is cancelled, unless the caller has chosen its id', async () => {
  const { send, get, broker } = await setup()
  const add = vi.spyOn(broker.groups, 'add')
  const draining = new BullpenError('queue_draining', "queue 'cpu' is draining")
  add.mockRejectedValueOnce(draining)
  expect((await send('', { tasks: [square(1)] })).statusCode).toBe(503)
  expect((await get('/v1/groups')).json()).toEqual({ groups: [] })
  add.mockRejectedValueOnce(draining)
  await send('', { id, tasks: [square(1)] })
  expect((await send('', { id, tasks: [square(1)] })).json()).toMatchObject({ id, count: 1, state: 'sealed' })
})

it('a sealed group accepts no members, and ends when it has none left', async () => {
  const { send, get } = await setup()
  await send('', { id })
  const misdirected = problemIn(await send(`/${id}/seal`, { tasks: [square(1)] }))
  expect(misdirected).toMatchObject({ status: 400, errors: [{ pointer: '/tasks' }] })
  expect((await send(`/${id}/seal`)).json()).toMatchObject({ state: 'ended', result: 'completed', progress: 1 })
  expect(problemIn(await send(`/${id}/tasks`, { tasks: [square(1)] }))).toMatchObject({
    status: 409,
    code: 'group_ended',
  })
  expect((await get(`/v1/groups/${id}?wait=1`)).json()).toMatchObject({ state: 'ended' })
})

it('a group has follow-ups, which are checked when it is created', async () => {
  const { send, broker } = await setup()
  const wrong = problemIn(await send('', { id, onEnd: [square('x')] }))
  expect(wrong).toMatchObject({ status: 422, code: 'invalid_input', errors: [{ pointer: '/onEnd/0/input/n' }] })
  await send('', { id, onSuccess: [square(1)], onFailure: [square(2)], onEnd: [square(3)] })
  await send(`/${id}/seal`)
  await expect.poll(() => broker.released).toHaveLength(2)
  expect(broker.released).toMatchObject([
    { source: id, slot: 's1' },
    { source: id, slot: 'e3' },
  ])
})

it('POST /v1/groups/{id}/cancel cancels the group and says who did', async () => {
  const { send, get, lines } = await setup()
  await send('', { id, tasks: [square(1)] })
  expect((await send(`/${id}/cancel`, { by: 'bob' })).json()).toMatchObject({
    cancelReason: 'cancelled',
    cancelledBy: `bob (${KEY_NAME})`,
  })
  expect((await send(`/${id}/cancel`)).json()).toMatchObject({ cancelledBy: `bob (${KEY_NAME})` })
  expect(lines).toContainEqual(expect.objectContaining({ message: 'group cancelled' }))
  expect((await get('/v1/groups')).json()).toMatchObject({ groups: [{ id }] })
})

it.each([`/v1/groups/${id}`, '/v1/groups/cpu-1', `/v1/groups/${id}/results`])('GET %s is not found', async (path) => {
  const { get } = await setup()
  expect(problemIn(await get(path))).toMatchObject({ status: 404, code: 'group_not_found' })
})
