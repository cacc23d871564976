// Tests what each route that stores tasks takes of an API key's rates in queues, and what it gives back.
import {
  BullpenError,
  defineCatalogue,
  definePipeline,
  defineReducer,
  defineSchedule,
  defineSource,
  defineTask,
  EnqueueRateError,
  QueueFullError,
} from '@bullpen/contract'
import { createGroupId, createRunId, createTaskId } from '@bullpen/contract/internal'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { KEY, NOW, problemIn, testApi } from '../../api.fixture.ts'
import { createKeyring } from '../../auth/keyring.ts'
import type { ServerOptions } from '../../http/server.ts'

const n = z.object({ n: z.int() })
const square = defineTask({ name: 'math.square', queue: 'cpu', input: n, output: n })
const send = defineTask({ name: 'mail.send', queue: 'mail', input: n })
const numbers = defineSource({ name: 'math.numbers', queue: 'io', input: n, item: n })
const sum = defineReducer({ name: 'math.sum', queue: 'cpu', input: n, item: n, output: z.int() })
const squares = definePipeline('squares').source(numbers).map(square).reduce(sum)
const nightly = defineSchedule({ name: 'nightly', task: square, input: { n: 1 }, cron: '0 3 * * *' })
const catalogue = defineCatalogue(square, send, numbers, sum, squares, nightly)

const CPU = { task: 'math.square', input: { n: 1 } }
const MAIL = { task: 'mail.send', input: { n: 1 } }
const DEAD = createTaskId('cpu', NOW, new Uint8Array(10))
const GROUP = createGroupId(NOW, new Uint8Array(10))
const RUN = createRunId(NOW, new Uint8Array(10))

type Tokens = Readonly<Record<string, number>>
type Row = readonly [what: string, path: string, body: object, tokens: Tokens]

const CHARGES: readonly Row[] = [
  [
    'follow-ups at any depth, and a task in one of their queues',
    '/v1/tasks',
    { ...CPU, onSuccess: [{ ...MAIL, onEnd: [CPU] }] },
    { mail: 1, cpu: 2 },
  ],
  ['only follow-ups, if the task is in another queue', '/v1/tasks', { ...CPU, onFailure: [MAIL, MAIL] }, { mail: 2 }],
  [
    'all tasks of a bulk request in a queue of follow-ups',
    '/v1/tasks/bulk',
    { tasks: [CPU, MAIL, { ...CPU, onEnd: [MAIL] }] },
    { mail: 2 },
  ],
  [
    'an atomic bulk request with a follow-up',
    '/v1/tasks/bulk',
    { atomic: true, tasks: [CPU, { ...CPU, onEnd: [CPU] }] },
    { cpu: 3 },
  ],
  [
    'members and follow-ups of a group',
    '/v1/groups',
    { tasks: [CPU, { ...MAIL, onEnd: [CPU] }], onEnd: [{ ...MAIL, onEnd: [CPU] }] },
    { cpu: 3, mail: 2 },
  ],
  ['further members of a group', `/v1/groups/${GROUP}/tasks`, { tasks: [CPU, MAIL, MAIL] }, { cpu: 1, mail: 2 }],
  [
    'the source and the reduction of a pipeline',
    '/v1/runs',
    { pipeline: 'squares', input: { n: 1 } },
    { io: 1, cpu: 1 },
  ],
  ['the task of a schedule', '/v1/schedules/nightly/run', {}, { cpu: 1 }],
  ['a retry and the follow-ups that its call has named', `/v1/tasks/${DEAD}/retry`, {}, { cpu: 2, mail: 1 }],
  ['a retry in another queue', `/v1/tasks/${DEAD}/retry`, { queue: 'mail' }, { mail: 1 }],
]

/** The routes whose requests store no task, or only tasks that no rate counts: docs/how-to/api-keys.md says which. */
const NOT_CHARGED: readonly string[] = [
  '/v1/commands',
  '/v1/dead-tasks/delete',
  '/v1/dead-tasks/requests/{id}/stop',
  '/v1/dead-tasks/retry',
  '/v1/groups/{id}/cancel',
  '/v1/groups/{id}/seal',
  '/v1/orphans/delete',
  '/v1/runs/{id}/cancel',
  '/v1/schedules',
  '/v1/schedules/sync',
  '/v1/schedules/{name}/pause',
  '/v1/schedules/{name}/resume',
  '/v1/tasks/cancel',
  '/v1/tasks/{id}/cancel',
]

const FULL = new QueueFullError({ queue: 'cpu', limit: 'maxTasks', max: 1, found: 1 })

/** Opens an API whose key has a rate in every queue. `afterTaking` is called once the tokens of a request are taken. */
async function setup(afterTaking: () => void = () => {}, more: Partial<ServerOptions> = {}) {
  const api = await testApi({ catalogue, keyring: createKeyring([`shop:${KEY}`]), ...more })
  const { broker, ask } = api
  const post = (url: string, payload: object = {}) => ask({ method: 'POST', url, payload })
  await post('/v1/schedules/sync')
  await post('/v1/groups', { id: GROUP })
  broker.put({ id: DEAD, queue: 'cpu', status: 'dead', input: { n: 3 }, followUpQueues: ['cpu', 'mail'] })
  const charged: Tokens[] = []
  const returned: Tokens[] = []
  const take = vi.spyOn(broker, 'takeInQueues').mockImplementation(async (apiKeyName, wanted) => {
    expect(apiKeyName).toBe('shop')
    charged.push(Object.fromEntries(wanted.map(({ queue, tokens }) => [queue, tokens])))
    afterTaking()
    return async (tokens) => {
      returned.push(Object.fromEntries([...tokens].filter(([, count]) => count !== 0)))
    }
  })
  return { ...api, post, take, charged, returned }
}

test('every POST route either takes tokens or is known to store no task that counts', async () => {
  const { get } = await setup()
  const { paths } = (await get('/openapi.json')).json()
  const posts = Object.keys(paths).filter((path) => 'post' in paths[path])
  const charged = posts.filter((path) => !NOT_CHARGED.includes(path))
  const patterns = charged.map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`))
  expect(CHARGES.filter(([, path]) => !patterns.some((pattern) => pattern.test(path)))).toEqual([])
  expect(patterns.filter((pattern) => !CHARGES.some(([, path]) => pattern.test(path)))).toEqual([])
})

test.each(CHARGES)('%s take tokens in their queues, and keep them', async (_, path, body, tokens) => {
  const { post, charged, returned } = await setup()
  expect((await post(path, body)).statusCode).toBeLessThan(300)
  expect(charged).toEqual([tokens])
  expect(returned).toEqual([{}])
})

test.each(CHARGES)('%s are not stored if a queue refuses', async (_, path, body) => {
  const { post, take, broker, events } = await setup()
  const rate = { max: 5, perMs: 60_000 }
  take.mockRejectedValue(new EnqueueRateError({ apiKeyName: 'shop', queue: 'mail', rate, retryAfterMs: 600 }))
  const response = await post(path, body)
  expect(problemIn(response)).toMatchObject({ status: 429, code: 'enqueue_rate_exceeded' })
  expect(response.headers['ratelimit-policy']).toBe('"queue-enqueue-rate";q=5;w=60')
  expect([broker.enqueued, broker.retries]).toEqual([[], []])
  expect(events).toContainEqual(expect.objectContaining({ event: 'task.refused', limit: 'enqueueRate' }))
})

test.each([
  ['given back if the broker has refused the tasks', FULL, true],
  ['kept if the tasks may be stored', new BullpenError('redis_unavailable', 'Redis did not respond'), false],
])('tokens are %s', async (_, error, areReturned) => {
  for (const [, path, body, tokens] of CHARGES) {
    const { post, returned, broker } = await setup(() => {
      const fail = async () => Promise.reject(error)
      Object.assign(broker, { enqueue: fail, enqueueAll: fail, retry: fail })
      Object.assign(broker, { enqueueBulk: async () => [1, 2, 3].map(() => ({ status: 'rejected', reason: error })) })
      Object.assign(broker.groups, { admit: fail, add: fail })
      Object.assign(broker.runs, { start: fail })
      Object.assign(broker.schedules, { run: fail })
    })
    await post(path, body)
    expect(returned, path).toEqual([areReturned ? tokens : {}])
  }
})

test('tokens are given back for those tasks of a bulk request that are not stored', async () => {
  const { post, broker, charged, returned } = await setup()
  vi.spyOn(broker, 'enqueueBulk').mockImplementation(async ([first]) => [
    { status: 'fulfilled', value: { id: first?.id ?? DEAD, action: 'created' } },
    { status: 'fulfilled', value: { id: DEAD, action: 'existing' } },
    { status: 'rejected', reason: FULL },
    { status: 'rejected', reason: new BullpenError('redis_unavailable', 'Redis did not respond') },
  ])
  await post('/v1/tasks/bulk', {
    tasks: [
      { ...CPU, onEnd: [CPU] },
      { ...CPU, unique: { key: 'k' }, onEnd: [CPU, CPU] },
      { ...CPU, onEnd: [MAIL] },
      { ...CPU, onEnd: [MAIL, MAIL] },
    ],
  })
  expect(charged).toEqual([{ cpu: 7, mail: 3 }])
  expect(returned).toEqual([{ cpu: 4, mail: 1 }])
})

test('a task of a bulk request keeps its tokens once, also if reporting it fails after it was stored', async () => {
  const enqueueTimed = () => {
    throw new BullpenError('internal_error', 'the time could not be recorded')
  }
  const { post, returned } = await setup(undefined, { enqueueTimed })
  await post('/v1/tasks/bulk', {
    tasks: [
      { ...CPU, onEnd: [CPU] },
      { ...CPU, onEnd: [CPU] },
    ],
  })
  expect(returned).toEqual([{}])
})

test('a group that exists without its members keeps the tokens of its follow-ups', async () => {
  const { post, broker, returned } = await setup()
  vi.spyOn(broker.groups, 'add').mockRejectedValue(FULL)
  await post('/v1/groups', { tasks: [CPU], onEnd: [MAIL] })
  expect(returned).toEqual([{ cpu: 1 }])
})

test.each<Row>([
  [
    'a group with the same id',
    '/v1/groups',
    { id: 'group-01jd3v7n8q0000000000000000', tasks: [CPU], onEnd: [MAIL] },
    { cpu: 1, mail: 1 },
  ],
  ['a run with the same id', '/v1/runs', { pipeline: 'squares', input: { n: 1 }, id: RUN }, { io: 1, cpu: 1 }],
  ['a copy by the same request', `/v1/tasks/${DEAD}/retry`, { queue: 'mail', id: 'mine' }, { mail: 1 }],
  ['a retry by the same request', `/v1/tasks/${DEAD}/retry`, { id: 'mine' }, { cpu: 2, mail: 1 }],
])('%s gives its tokens back when it is repeated', async (_, path, body, tokens) => {
  const { post, charged, returned } = await setup()
  await post(path, body)
  await post(path, body)
  expect(charged).toEqual([tokens, tokens])
  expect(returned).toEqual([{}, tokens])
})

test('tasks whose tokens were taken do not take them again when they are added', async () => {
  const { post, broker } = await setup()
  await post('/v1/tasks', { ...CPU, onEnd: [CPU] })
  await post('/v1/tasks', { ...CPU, onEnd: [MAIL] })
  await post('/v1/tasks', CPU)
  expect(broker.enqueued.map(({ hasToken }) => hasToken)).toEqual([true, undefined, undefined])
})

test('plain tasks take no tokens before they are added', async () => {
  const { post, take } = await setup()
  await post('/v1/tasks', CPU)
  await post('/v1/tasks/bulk', { tasks: [CPU, MAIL] })
  await post('/v1/tasks/bulk', { atomic: true, tasks: [CPU, CPU] })
  expect(take).not.toHaveBeenCalled()
})
