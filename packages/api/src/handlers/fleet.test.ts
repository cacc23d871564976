// Tests how the fleet is shown over HTTP.
import type { FleetView, PoolPage, SlotPage } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { anId, NOW, problemIn, testApi } from '../api.fixture.ts'
import { P1 } from '../fake-fleet.fixture.ts'

const at = (ms: number): string => new Date(ms).toISOString()
const pool = { queue: 'cpu', state: 'BG_RUNNING', paused: false, concurrency: 2, busy: 1, stuckHandlers: 0 } as const
const idle = { slot: 2, state: 'IDLE', since: NOW - 5_000, task: undefined } as const

describe('the fleet', () => {
  test('without workers has only queues', async () => {
    const { get } = await testApi()
    const queue = { admission: 'open', paused: false, pools: 0, slots: 0, busy: 0 }
    expect((await get('/v1/fleet')).json()).toEqual({
      now: at(NOW),
      queues: [
        { queue: 'cpu', ...queue },
        { queue: 'mail', ...queue },
      ],
      workers: [],
    })
    expect((await get('/v1/pools')).json()).toEqual({ pools: [] })
    expect((await get('/v1/slots')).json()).toEqual({ slots: [] })
  })

  test('counts running pools of live workers, and shows the last status of silent workers', async () => {
    const { get, fleet } = await testApi()
    const pools = [{ ...pool, notReady: 'Redis is unreachable', slots: [] }]
    fleet.put({ worker: 'a', pools })
    fleet.put({ worker: 'b', pools, seenAt: NOW - 6_001 })
    fleet.put({
      worker: 'c',
      draining: true,
      pools: pools.map((each) => ({ ...each, state: 'SHUTDOWN' as const })),
    })
    const view = (await get('/v1/fleet')).json<FleetView>()
    expect(view.queues[0]).toMatchObject({ queue: 'cpu', pools: 1, slots: 2, busy: 1 })
    expect(view.workers).toMatchObject([
      {
        worker: 'a',
        host: 'pod-1',
        pid: 7,
        version: '1.2.3',
        alive: true,
        draining: false,
        seenAt: at(NOW - 500),
        pools: [{ ...pool, label: 'running', notReady: 'Redis is unreachable' }],
      },
      { worker: 'b', alive: false },
      { worker: 'c', alive: true, draining: true },
    ])
    expect(view.workers[0]?.pools[0]).not.toHaveProperty('slots')
    const listed = (await get('/v1/pools')).json<PoolPage>()
    expect(listed.pools.map(({ worker, state }) => [worker, state])).toEqual([
      ['a', 'BG_RUNNING'],
      ['c', 'SHUTDOWN'],
    ])
  })

  test('shows the settings of a queue', async () => {
    const { get, fleet } = await testApi()
    const drain = { mode: 'light', timeoutMs: undefined, since: NOW - 9_000, command: 'once-1' } as const
    fleet.set('cpu', { paused: true, drain, concurrency: 3, rate: { max: 10, perMs: 1_000 } })
    const { queues } = (await get('/v1/fleet?queue=cpu')).json<FleetView>()
    expect(queues).toEqual([
      {
        ...{ queue: 'cpu', admission: 'closed', paused: true, concurrency: 3, rate: { max: 10, perMs: 1_000 } },
        ...{ drain: { mode: 'light', since: at(NOW - 9_000), command: 'once-1' }, pools: 0, slots: 0, busy: 0 },
      },
    ])
  })

  test('shows the log level that a command has set for all processes', async () => {
    const { get, fleet } = await testApi()
    fleet.level = { command: 'c-1', level: 'debug', by: 'ann', until: NOW + 60_000 }
    const { logLevel } = (await get('/v1/fleet')).json<FleetView>()
    expect(logLevel).toEqual({ command: 'c-1', level: 'debug', by: 'ann', until: at(NOW + 60_000) })
  })

  test('of one queue has the workers with a pool on it, and only those pools', async () => {
    const { get, fleet } = await testApi()
    const both = ['cpu', 'mail'].map((queue) => ({ ...pool, queue, notReady: undefined, slots: [] }))
    fleet.put({ worker: 'both', pools: both })
    fleet.put({ worker: 'cpu alone', pools: both.slice(0, 1) })
    const { queues, workers } = (await get('/v1/fleet?queue=mail')).json<FleetView>()
    expect(queues.map(({ queue }) => queue)).toEqual(['mail'])
    expect(workers.map(({ worker, pools }) => [worker, pools.map(({ queue }) => queue)])).toEqual([['both', ['mail']]])
  })

  test("shows the clock skew of a worker; all times are Redis's", async () => {
    const { get, fleet } = await testApi()
    const skewMs = 90_000.5
    const task = { id: anId, task: 'email.welcome', fencingToken: 1, timeoutAt: NOW + 10_000 }
    const slots = [{ slot: 1, state: 'WORKING', since: NOW - 1_000, task } as const]
    fleet.put({ skewMs, startedAt: NOW - 60_000, pools: [{ ...pool, notReady: undefined, slots }] })
    const { workers } = (await get('/v1/fleet')).json<FleetView>()
    expect(workers).toMatchObject([{ skewMs, startedAt: at(NOW - 60_000) }])
    const listed = (await get('/v1/slots')).json<SlotPage>()
    expect(listed.slots).toEqual([
      {
        ...{ worker: P1, queue: 'cpu', slot: 1, state: 'WORKING', label: 'running a task', since: at(NOW - 1_000) },
        task: {
          ...{ id: anId, task: 'email.welcome', fencingToken: 1, kind: 'long', onInterrupt: 'requeue' },
          timeoutAt: at(NOW + 10_000),
        },
      },
    ])
  })
})

describe('slots', () => {
  async function two() {
    const api = await testApi()
    const task = { id: anId, task: 'of.others', fencingToken: 3 }
    const slots = [{ slot: 1, state: 'WORKING', since: NOW - 1_000, task } as const, idle]
    const strange = "über pod/1 '"
    api.fleet.put({ worker: strange, pools: [{ ...pool, notReady: undefined, slots }] })
    api.fleet.put({ worker: 'other', pools: [{ ...pool, queue: 'of.others', notReady: undefined, slots: [idle] }] })
    api.fleet.put({ worker: 'silent', seenAt: 0, pools: [{ ...pool, notReady: undefined, slots: [idle] }] })
    return { ...api, strange }
  }
  const names = (page: SlotPage) => page.slots.map(({ worker, slot }) => `${worker}/${slot}`)

  test('are those of live workers, filtered by queue, worker and state', async () => {
    const { get, strange } = await two()
    const ask = async (query: string) => names((await get(`/v1/slots${query}`)).json<SlotPage>())
    expect(await ask('')).toEqual([`${strange}/1`, `${strange}/2`, 'other/2'])
    expect(await ask('?queue=cpu&state=IDLE')).toEqual([`${strange}/2`])
    expect(await ask(`?worker=${encodeURIComponent(strange)}`)).toEqual([`${strange}/1`, `${strange}/2`])
    expect(await ask('?queue=of.others')).toEqual(['other/2'])
    expect(await ask('?worker=nobody')).toEqual([])
  })

  test('have no task when idle, and no kind of a task that is not in the catalogue', async () => {
    const { get } = await two()
    const { slots } = (await get('/v1/slots?queue=cpu')).json<SlotPage>()
    expect(slots.map(({ task }) => task)).toEqual([{ id: anId, task: 'of.others', fencingToken: 3 }, undefined])
  })
})

test.each(['/v1/fleet', '/v1/pools', '/v1/slots'])(
  '%s refuses unknown queues and parameters, missing keys, and is a 503 while Redis is down',
  async (path) => {
    const { app, get, fleet } = await testApi()
    expect(problemIn(await get(`${path}?queue=cpv`))).toMatchObject({
      code: 'queue_not_found',
      detail: expect.stringContaining('did you mean cpu?'),
    })
    expect(problemIn(await get(`${path}?quue=cpu`))).toMatchObject({ code: 'invalid_request' })
    expect(problemIn(await app.inject({ url: path }))).toMatchObject({ code: 'unauthorized' })
    fleet.trouble = 'down'
    expect(problemIn(await get(path))).toMatchObject({ status: 503, code: 'redis_unavailable' })
  },
)
