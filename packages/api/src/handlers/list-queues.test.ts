// Tests how the queues are shown over HTTP.
import type { QueuePage } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, test } from 'vitest'
import { EMPTY_HEAD, NOW, PLATFORM, problemIn, testApi } from '../api.fixture.ts'

const id = (n: number) => createTaskId('cpu', NOW + n, new Uint8Array(10))
const at = (ms: number): string => new Date(ms).toISOString()

describe('the queues', () => {
  test('have their tasks by status, the oldest waiting task, their limits, objectives and slots', async () => {
    const oldest = { id: id(1), task: 'math.square', enqueuedAt: NOW - 9_000, readyAt: NOW - 2_000 }
    const { get, broker, fleet } = await testApi({
      platform: {
        ...PLATFORM,
        head: async (queue) => (queue === 'cpu' ? { ...EMPTY_HEAD, oldest, blockedTasks: 1 } : EMPTY_HEAD),
      },
    })
    broker.put({ id: id(1), enqueuedAt: NOW - 9_000 })
    broker.put({ id: id(2), enqueuedAt: NOW - 5_000 })
    broker.put({ id: id(3), status: 'dead' })
    fleet.set('cpu', { concurrency: 3 })
    const pool = {
      queue: 'cpu',
      state: 'BG_RUNNING',
      paused: false,
      concurrency: 4,
      busy: 1,
      stuckHandlers: 0,
    } as const
    fleet.put({ worker: 'a', pools: [{ ...pool, notReady: undefined, slots: [] }] })
    const page = (await get('/v1/queues')).json<QueuePage>()
    expect(page.now).toBe(at(NOW))
    expect(page.queues).toMatchObject([
      {
        ...{ queue: 'cpu', concurrency: 3, slots: 4, busy: 1, bytes: 1_536 },
        tasks: { waiting: 2, active: 0, scheduled: 0, retrying: 0, completed: 0, dead: 1, cancelled: 0, expired: 0 },
        oldestWaiting: { id: id(1), task: 'math.square', enqueuedAt: at(NOW - 9_000), readyAt: at(NOW - 2_000) },
        blockedTasks: 1,
      },
      {
        ...{ queue: 'mail', maxTasks: 500, tasks: { waiting: 0 } },
        slos: [{ task: 'email.welcome', startWithinMs: 30_000, objective: 0.99 }],
      },
    ])
    expect(page.queues[0]).not.toHaveProperty('slos')
    expect(page.queues[1]).not.toHaveProperty('oldestWaiting')
  })

  test('have a limit that a command has set in place of the one in the definition', async () => {
    const { get, fleet } = await testApi()
    fleet.set('mail', { maxTasks: 7 })
    expect((await get('/v1/queues?queue=mail')).json<QueuePage>().queues).toMatchObject([
      { queue: 'mail', maxTasks: 7 },
    ])
  })

  test('have the limits of their concurrency keys', async () => {
    const { get, fleet } = await testApi()
    const rate = { max: 100, perMs: 60_000, burst: 5 }
    fleet.set('mail', { perConcurrencyKey: { concurrency: 3, rate, ofSingleKeys: 2 } })
    expect((await get('/v1/queues?queue=mail')).json<QueuePage>().queues).toMatchObject([
      { queue: 'mail', perConcurrencyKey: { concurrency: 3, rate, ofSingleKeys: 2 } },
    ])
  })

  test('have their permits and the concurrency of their definitions', async () => {
    const { get, fleet } = await testApi()
    const limiters = [{ kind: 'permits' as const, name: 'db', capacity: 10, inUse: 3 }]
    fleet.set('mail', { limiters })
    expect((await get('/v1/queues?queue=mail')).json<QueuePage>().queues).toMatchObject([{ queue: 'mail', limiters }])
  })

  test('have rates, which the first request measures for a second', async () => {
    const { get, broker } = await testApi()
    const first = get('/v1/queues?queue=cpu')
    broker.put({ id: id(1) })
    const [queue] = (await first).json<QueuePage>().queues
    expect(queue?.rates.overMs).toBeGreaterThanOrEqual(1_000)
    broker.change(id(1), { status: 'completed' })
    const [later] = (await get('/v1/queues?queue=cpu')).json<QueuePage>().queues
    expect(later?.rates.out).toBeGreaterThan(0)
  })

  test('have the five most frequent kinds of error of their dead tasks', async () => {
    const { get, broker } = await testApi()
    const kinds = Array.from({ length: 6 }, (_, n) => ({
      ...{ fingerprint: `000000000000000${n}`, state: 'DONE_ERROR', code: `code_${n}`, message: 'no customer #' },
      ...{ count: 9 - n, oldestAt: NOW - 2_000, newestAt: NOW - 1_000, newestId: id(n) },
    }))
    broker.fingerprints.set('cpu', kinds)
    const [cpu, mail] = (await get('/v1/queues')).json<QueuePage>().queues
    const times = { oldestAt: at(NOW - 2_000), newestAt: at(NOW - 1_000) }
    expect(cpu?.deadByFingerprint).toEqual(kinds.slice(0, 5).map((kind) => ({ ...kind, ...times })))
    expect(mail?.deadByFingerprint).toEqual([])
  })

  test('with an unknown name are a 404 that suggests the nearest name', async () => {
    const { get } = await testApi()
    const problem = problemIn(await get('/v1/queues?queue=mial'))
    expect(problem).toMatchObject({ status: 404, code: 'queue_not_found' })
  })
})
