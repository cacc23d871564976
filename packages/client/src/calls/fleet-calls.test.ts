// Tests the client's fleet methods against an HTTP server whose responses each test defines.
import type { CommandView } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import type { Client } from '../index.ts'
import { api, problem } from '../server.fixture.ts'

const WORKER = 'pod 1/a:7:ab12cd34'
const DONE = {
  id: 'once-1',
  spec: { action: 'pause', queue: 'cpu' },
  by: 'ann (key 3fa29c01)',
  at: '2026-01-01T00:00:00.000Z',
  outcome: 'done',
  responses: [],
} satisfies CommandView

describe('the fleet', () => {
  test('is requested with the given filters, and returned unchanged', async () => {
    const fleet = {
      now: '2026-01-01T00:00:00.000Z',
      queues: [{ queue: 'cpu', paused: false }],
      workers: [{ worker: WORKER }],
    }
    const pool = { worker: WORKER, queue: 'cpu', state: 'BG_RUNNING' }
    const slot = { worker: WORKER, queue: 'cpu', slot: 1, state: 'IDLE' }
    const { client, seen } = await api([
      [200, fleet],
      [200, fleet],
      [200, { pools: [pool] }],
      [200, { slots: [slot] }],
      [200, { slots: [] }],
    ])
    expect(await client.fleet()).toEqual(fleet)
    await client.fleet({ queue: 'cpu' })
    expect(await client.pools({ worker: WORKER })).toEqual([pool])
    expect(await client.slots({ queue: 'cpu', worker: WORKER, state: 'IDLE' })).toEqual([slot])
    expect(await client.slots()).toEqual([])
    expect(seen.map(({ url }) => url)).toEqual([
      '/v1/fleet',
      '/v1/fleet?queue=cpu',
      '/v1/pools?worker=pod+1%2Fa%3A7%3Aab12cd34',
      '/v1/slots?queue=cpu&worker=pod+1%2Fa%3A7%3Aab12cd34&state=IDLE',
      '/v1/slots',
    ])
  })
})

describe('the limits of a queue', () => {
  test('are requested for a page of keys or for a single one, and returned unchanged', async () => {
    const limits = {
      ...{ queue: 'cpu', now: '2026-01-01T00:00:00.000Z', paused: false, takesTurns: true, limits: {} },
      keys: { waitingKeys: 0, waitingTasks: 0, items: [], exact: true },
    }
    const { client, seen } = await api([
      [200, limits],
      [200, limits],
      [200, limits],
    ])
    expect(await client.limits('cpu')).toEqual(limits)
    await client.limits('cpu', { sort: 'active', limit: 10, cursor: 'c' })
    await client.limits('cpu', { concurrencyKey: 'a &"b"' })
    expect(seen.map(({ url }) => url)).toEqual([
      '/v1/queues/cpu/limits',
      '/v1/queues/cpu/limits?sort=active&limit=10&cursor=c',
      '/v1/queues/cpu/limits?concurrencyKey=a+%26%22b%22',
    ])
  })
})

describe('a command', () => {
  test('is sent with an id, an author and a wait', async () => {
    const { client, seen } = await api([[200, DONE]])
    const order = { action: 'stop', worker: WORKER, queue: 'cpu', slot: 3, how: 'hard' } as const
    expect(await client.command(order, { id: 'once-1', by: 'ann', wait: '1500ms' })).toEqual(DONE)
    expect(seen).toMatchObject([
      { method: 'POST', url: '/v1/commands?wait=1.5', body: { ...order, id: 'once-1', by: 'ann' } },
    ])
  })

  test('is sent again with the same id if its response is lost', async () => {
    const { client, seen } = await api(['break', problem('redis_unavailable', 503), [502, '<html>'], [200, DONE]])
    expect(await client.command({ action: 'drain', queue: 'cpu' })).toEqual(DONE)
    expect(seen).toHaveLength(4)
    const [first] = seen
    expect(first).toMatchObject({ url: '/v1/commands?wait=5', body: { action: 'drain', queue: 'cpu' } })
    expect(first?.body).toHaveProperty('id', expect.stringMatching(/^[0-9a-f]{32}$/))
    expect(seen.map(({ body }) => body)).toEqual(Array(4).fill(first?.body))
  })

  test('is not sent again if it is rejected', async () => {
    const { client, seen } = await api([problem('worker_not_found', 404)])
    await expect(client.command({ action: 'resume', worker: 'p' }, { wait: 'none' })).rejects.toMatchObject({
      code: 'worker_not_found',
    })
    expect(seen.map(({ url }) => url)).toEqual(['/v1/commands?wait=0'])
  })

  test.each([
    (client: Client) => client.command({ action: 'resume', queue: 'cpu' }, { wait: '100ms' }),
    (client: Client) => client.commandById('once-1', { wait: '100ms' }),
  ])('is awaited for its wait and the request timeout: %s', async (call) => {
    const { client } = await api(['silence'], { requestTimeout: '20ms', retryFor: '10ms' })
    const before = performance.now()
    await expect(call(client)).rejects.toMatchObject({ code: 'unreachable' })
    expect(performance.now() - before).toBeGreaterThan(110)
  })

  test('is looked up, awaited and listed', async () => {
    const { client, seen } = await api([
      [200, DONE],
      [200, DONE],
      [200, { commands: [DONE] }],
      [200, { commands: [] }],
    ])
    expect(await client.commandById('once-1')).toEqual(DONE)
    expect(await client.commandById('a/b', { wait: '30s' })).toEqual(DONE)
    expect(await client.commands()).toEqual([DONE])
    expect(await client.commands({ limit: 3 })).toEqual([])
    expect(seen.map(({ url }) => url)).toEqual([
      '/v1/commands/once-1',
      '/v1/commands/a%2Fb?wait=30',
      '/v1/commands',
      '/v1/commands?limit=3',
    ])
  })

  test('must have the fields of its action', async () => {
    const { client } = await api([[200, DONE]])
    // @ts-expect-error: a resize needs a concurrency.
    await client.command({ action: 'resize', queue: 'cpu' })
    // @ts-expect-error: the id is an option.
    await client.command({ action: 'pause', queue: 'cpu', id: 'x' })
  })
})
