// Tests how the limits of a queue and its concurrency keys are shown over HTTP.
import { defineCatalogue, defineQueue, defineTask, type LimitsView } from '@bullpen/contract'
import { timeText } from '@bullpen/contract/internal'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { NOW, problemIn, testApi } from '../api.fixture.ts'

const io = { input: z.object({}), output: z.object({}) }
const fair = defineQueue({
  name: 'reports',
  limits: {
    maxTasks: 500,
    maxBytes: 1_000,
    perApiKey: { enqueueRate: '10/1s' },
    perConcurrencyKey: { concurrency: 2 },
  },
  fairness: { weights: { small: 0.5, gold: 3 } },
})
const catalogue = defineCatalogue(
  defineTask({ name: 'reports.render', queue: fair, ...io }),
  defineTask({ name: 'cpu.square', queue: 'cpu', ...io }),
)
const source = 'command' as const
const rate = { max: 5, perMs: 60_000, burst: 3 }

test('each limit shows what has set it, each breaker its state, and each key what keeps it from starting tasks', async () => {
  const { get, broker, fleet } = await testApi({ catalogue })
  const limiters = [{ kind: 'permits' as const, name: 'db', capacity: 10, inUse: 3, source }]
  const breaker = { service: 'smtp', state: 'open', mode: 'auto', calls: 0, failures: 0, slow: 0 } as const
  const breakers = [{ ...breaker, since: NOW - 500, startsAt: NOW + 500, setBy: undefined }]
  const keyed = { perConcurrencyKey: { concurrency: 2, ofSingleKeys: 1 } }
  fleet.set('reports', { paused: true, maxTasks: 7, ...keyed, breakers })
  fleet.keyLimits = {
    limiters,
    perApiKey: new Map([['shop', { maxUnfinishedTasks: 8 }]]),
    perConcurrencyKey: { concurrency: { value: 2, source: 'definition' }, rate: undefined },
    singleKeys: [{ key: 'a "1"', concurrency: undefined, rate: { value: rate, source } }],
  }
  const [nextStartAt, isOwn] = [NOW + 600, false]
  broker.keyPage = {
    ...{ now: NOW, waitingKeys: 2, waitingTasks: 9, exact: true, next: 'more' },
    keys: [
      {
        ...{ key: 'gold', waiting: 8, active: 2, concurrency: { value: 2, source: 'definition', isOwn } },
        ...{ rate: { value: rate, source, isOwn }, blockedBy: ['concurrency', 'rate'], nextStartAt },
      },
      {
        ...{ key: 'other', waiting: 1, active: 0, concurrency: undefined, rate: undefined },
        ...{ blockedBy: [], nextStartAt: undefined },
      },
    ],
  }
  const view = (await get('/v1/queues/reports/limits?sort=active&limit=2&cursor=c')).json<LimitsView>()
  expect(view).toEqual({
    ...{ queue: 'reports', now: new Date(NOW).toISOString(), paused: true, takesTurns: true },
    limits: {
      maxTasks: { max: 7, source },
      maxBytes: { max: 1_000, source: 'definition' },
      perApiKey: {
        enqueueRate: { max: 10, perMs: 1_000, source: 'definition' },
        apiKeys: [{ name: 'shop', maxUnfinishedTasks: { max: 8, source } }],
      },
      perConcurrencyKey: {
        concurrency: { max: 2, source: 'definition' },
        ofSingleKeys: 1,
        singleKeys: [{ key: 'a "1"', rate: { ...rate, source } }],
      },
      limiters,
      weights: {
        ofSingleKeys: 2,
        singleKeys: [
          { key: 'gold', weight: 3 },
          { key: 'small', weight: 0.5 },
        ],
      },
    },
    breakers: [{ ...breaker, since: timeText(NOW - 500), startsAt: timeText(NOW + 500) }],
    keys: {
      ...{ waitingKeys: 2, waitingTasks: 9, exact: true, next: 'more' },
      items: [
        {
          ...{ key: 'gold', weight: 3, waiting: 8, active: 2, blockedBy: ['concurrency', 'rate'] },
          ...{ concurrency: { max: 2, source: 'definition', isOwn }, rate: { ...rate, source, isOwn } },
          nextStartAt: new Date(nextStartAt).toISOString(),
        },
        { key: 'other', weight: 1, waiting: 1, active: 0, blockedBy: [] },
      ],
    },
  })
  await get(`/v1/queues/reports/limits?concurrencyKey=${encodeURIComponent('a &"1"')}`)
  await get('/v1/queues/reports/limits')
  expect(broker.keyQueries).toEqual([
    { queue: 'reports', order: 'active', limit: 2, cursor: 'c' },
    { queue: 'reports', concurrencyKey: 'a &"1"' },
    { queue: 'reports', order: 'backlog', limit: 50, cursor: undefined },
  ])
})

test('a queue without fairness shows only its other limits', async () => {
  const { get, fleet } = await testApi({ catalogue })
  fleet.set('cpu', { concurrency: 3 })
  expect((await get('/v1/queues/cpu/limits')).json()).toMatchObject({
    takesTurns: false,
    limits: { concurrency: { max: 3, source } },
    keys: { waitingKeys: 0, items: [] },
  })
})

test('an unknown queue, contradicting parameters and a missing API key are refused, also while Redis is down', async () => {
  const { app, get, broker } = await testApi({ catalogue })
  const path = '/v1/queues/reports/limits'
  expect(problemIn(await get('/v1/queues/report/limits'))).toMatchObject({
    ...{ status: 404, code: 'queue_not_found' },
    detail: expect.stringContaining('did you mean reports?'),
  })
  for (const query of [
    'concurrencyKey=a&sort=active',
    'concurrencyKey=a&cursor=c',
    'sort=size',
    'limit=201',
    'key=a',
  ]) {
    expect(problemIn(await get(`${path}?${query}`))).toMatchObject({ status: 400, code: 'invalid_request' })
  }
  expect(problemIn(await app.inject({ url: path }))).toMatchObject({ code: 'unauthorized' })
  broker.trouble = 'down'
  expect(problemIn(await get(path))).toMatchObject({ status: 503, code: 'redis_unavailable' })
})
