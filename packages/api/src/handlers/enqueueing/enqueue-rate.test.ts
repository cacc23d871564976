// Tests how the API responds if an API key exceeds its rate.
import { BullpenError, EnqueueRateError } from '@bullpen/contract'
import { describe, expect, test, vi } from 'vitest'
import { KEY, problemIn, testApi } from '../../api.fixture.ts'
import { createKeyring } from '../../auth/keyring.ts'

const SQUARE = { task: 'math.square', input: { n: 4 } }

async function limitedApi(perMs = 60_000) {
  const taken: { readonly apiKeyName: string; readonly tasks: number }[] = []
  let error: Error | undefined
  const api = await testApi({
    keyring: createKeyring([`shop:${KEY}`]),
    rates: {
      take(apiKeyName, tasks) {
        taken.push({ apiKeyName, tasks })
        if (error !== undefined) throw error
        return undefined
      },
    },
  })
  return {
    ...api,
    taken,
    bulk: (payload: object) => api.ask({ method: 'POST', url: '/v1/tasks/bulk', payload }),
    exceed: (): void => {
      error = new EnqueueRateError({ apiKeyName: 'shop', rate: { max: 100, perMs }, retryAfterMs: 4_200 })
    },
    fail: (with_: Error): void => {
      error = with_
    },
  }
}

describe('a request whose API key exceeds its rate', () => {
  test('gets 429 with the rate and when to try again, stores nothing, and is counted', async () => {
    const { exceed, post, broker, events } = await limitedApi()
    exceed()
    const answer = await post(SQUARE)
    expect(problemIn(answer)).toMatchObject({
      status: 429,
      code: 'enqueue_rate_exceeded',
      detail: "API key 'shop' has reached its rate of 100 tasks per 1m; nothing was stored, so try again later",
    })
    expect(problemIn(answer).taskId).toBeUndefined()
    expect(answer.headers).toMatchObject({
      'retry-after': '5',
      'ratelimit-policy': '"enqueue-rate";q=100;w=60',
      ratelimit: '"enqueue-rate";r=0;t=5',
    })
    expect(broker.enqueued).toEqual([])
    expect(events).toEqual([
      { event: 'task.refused', queue: 'cpu', task: 'math.square', limit: 'enqueueRate', action: 'rejected' },
    ])
  })

  test('creates no group', async () => {
    const { exceed, ask, broker } = await limitedApi()
    const create = vi.spyOn(broker.groups, 'create')
    exceed()
    const answer = await ask({ method: 'POST', url: '/v1/groups', payload: { tasks: [SQUARE], onEnd: [SQUARE] } })
    expect(problemIn(answer)).toMatchObject({ status: 429, code: 'enqueue_rate_exceeded' })
    expect(create).not.toHaveBeenCalled()
  })

  test('gets no window if the period is not whole seconds', async () => {
    const { exceed, post } = await limitedApi(250)
    exceed()
    expect((await post(SQUARE)).headers['ratelimit-policy']).toBe('"enqueue-rate";q=100')
  })

  test.each([false, true])('stores nothing of a bulk request (atomic: %s)', async (atomic) => {
    const { exceed, bulk, broker, events } = await limitedApi()
    exceed()
    expect(problemIn(await bulk({ atomic, tasks: [SQUARE, SQUARE] }))).toMatchObject({ code: 'enqueue_rate_exceeded' })
    expect(broker.enqueued).toEqual([])
    expect(events).toHaveLength(2)
  })

  test('is rejected, although its task may be dropped if the queue is full', async () => {
    const { exceed, post } = await limitedApi()
    exceed()
    expect((await post({ ...SQUARE, whenFull: 'drop' })).statusCode).toBe(429)
  })
})

describe('a request whose API key exceeds its rate in a queue', () => {
  test('is rejected, whatever happens if the queue is full', async () => {
    const { post, broker, events } = await limitedApi()
    broker.trouble = 'rate'
    for (const whenFull of ['reject', 'drop', { block: '30s' }]) {
      const answer = await post({ ...SQUARE, whenFull })
      expect(problemIn(answer)).toMatchObject({
        code: 'enqueue_rate_exceeded',
        detail: expect.stringContaining("'cpu'"),
      })
      expect(answer.headers).toMatchObject({
        'retry-after': '1',
        'ratelimit-policy': '"queue-enqueue-rate";q=100;w=60',
        ratelimit: '"queue-enqueue-rate";r=0;t=1',
      })
    }
    expect(events).toHaveLength(3)
    expect(events[0]).toMatchObject({ event: 'task.refused', limit: 'enqueueRate', action: 'rejected' })
  })

  test('gets a problem for each of its tasks, or one for all of them', async () => {
    const { bulk, broker, events } = await limitedApi()
    broker.trouble = 'rate'
    const separate = await bulk({ tasks: [SQUARE, SQUARE] })
    const error = { code: 'enqueue_rate_exceeded', status: 429 }
    const withTime = { error: { ...error, retryAfter: 1 } }
    expect(separate.json()).toMatchObject({ failed: 2, results: [withTime, withTime] })
    expect(problemIn(await bulk({ tasks: [SQUARE, SQUARE], atomic: true }))).toMatchObject(error)
    expect(events).toHaveLength(4)
  })

  test('hands the name of its API key to the broker', async () => {
    const { post, broker } = await limitedApi()
    await post(SQUARE)
    expect(broker.enqueued[0]?.apiKeyName).toBe('shop')
  })
})

test('the name of the API key and the number of valid tasks decide', async () => {
  const { post, bulk, taken } = await limitedApi()
  expect((await post(SQUARE)).statusCode).toBe(202)
  expect((await post({ task: 'math.square', input: { n: 'four' } })).statusCode).toBe(422)
  // Only creating the task shows that it would wait for longer than it may exist.
  expect((await post({ ...SQUARE, delay: '2h', totalTimeout: '1h' })).statusCode).toBe(400)
  expect((await bulk({ tasks: [SQUARE, { task: 'none' }, SQUARE] })).statusCode).toBe(200)
  expect((await bulk({ atomic: true, tasks: [SQUARE, SQUARE, SQUARE] })).statusCode).toBe(200)
  expect(taken).toEqual([1, 2, 3].map((tasks) => ({ apiKeyName: 'shop', tasks })))
})

/** Returns a task with follow-ups, nested `depth` deep and `width` wide. */
function tree(depth: number, width: number): object {
  const below = depth === 0 ? [] : Array.from({ length: width }, () => tree(depth - 1, width))
  return { ...SQUARE, ...(depth > 0 && { onSuccess: below.slice(1), onFailure: below.slice(0, 1) }) }
}

const TOKENS: readonly (readonly [what: string, path: string, body: object, tokens: number])[] = [
  ['a task', '/v1/tasks', SQUARE, 1],
  [
    'follow-ups of every kind',
    '/v1/tasks',
    { ...SQUARE, onSuccess: [SQUARE], onFailure: [SQUARE], onEnd: [SQUARE] },
    4,
  ],
  ['nested follow-ups', '/v1/tasks', tree(3, 6), 1 + 6 + 36 + 216],
  ['a bulk request', '/v1/tasks/bulk', { tasks: [SQUARE, tree(1, 3), { task: 'none' }] }, 1 + 4],
  ['an atomic bulk request', '/v1/tasks/bulk', { atomic: true, tasks: [SQUARE, tree(1, 3)] }, 1 + 4],
  ['a group', '/v1/groups', { tasks: [SQUARE, tree(1, 2)], onEnd: [tree(1, 2)] }, 1 + 3 + 3],
  ['a group without members', '/v1/groups', { onSuccess: [SQUARE], onEnd: [tree(2, 2)] }, 1 + 7],
]

test.each(TOKENS)(
  '%s costs a token for each task that the request names, at any depth',
  async (_, url, payload, tokens) => {
    const { ask, taken } = await limitedApi()
    await ask({ method: 'POST', url, payload })
    expect(taken).toEqual([{ apiKeyName: 'shop', tasks: tokens }])
  },
)

test('an empty group without follow-ups costs nothing', async () => {
  const { ask, taken } = await limitedApi()
  await ask({ method: 'POST', url: '/v1/groups', payload: {} })
  expect(taken).toEqual([])
})

test('a failure of Redis is reported without the id of a task that was never sent', async () => {
  const { fail, post } = await limitedApi()
  fail(new BullpenError('redis_unavailable', 'Redis is not reachable'))
  const problem = problemIn(await post(SQUARE))
  expect(problem).toMatchObject({ status: 503, code: 'redis_unavailable', outcome: 'refused' })
  expect(problem.taskId).toBeUndefined()
})

test.each([false, true])(
  'a failure of Redis while the rate is checked rejects a bulk request (atomic: %s)',
  async (atomic) => {
    const { fail, bulk, broker } = await limitedApi()
    fail(new BullpenError('redis_unavailable', 'Redis is not reachable'))
    const problem = problemIn(await bulk({ atomic, tasks: [SQUARE, SQUARE] }))
    expect(problem).toMatchObject({ status: 503, code: 'redis_unavailable' })
    expect(problem.taskId).toBeUndefined()
    expect(broker.enqueued).toEqual([])
  },
)
