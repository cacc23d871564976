// Tests that waits go on behind gateways that end requests, and over an API that restarts.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Duration, defineTask } from '@bullpen/contract'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { CUTS, gateway } from '../gateway.fixture.ts'
import { type Client, createClient, http } from '../index.ts'
import { closeAfterTest } from '../server.fixture.ts'

const block = { whenFull: { block: '30s' } } as const

async function last(events: AsyncIterable<unknown>): Promise<unknown> {
  let latest: unknown
  for await (const event of events) latest = event
  return latest
}

/** What each wait is for happens 25 s after its start, or after 95 s if the wait has no limit of its own. */
const WAITS: readonly (readonly [kind: string, endsAtMs: number, wait: (client: Client) => Promise<unknown>])[] = [
  ['waitUntilFinished of a task', 95_000, (client) => client.waitUntilFinished('cpu-1')],
  ['waitUntilFinished with a timeout', 95_000, (client) => client.waitUntilFinished('cpu-1', { timeout: '2m' })],
  ['waitUntilEnded of a group', 95_000, (client) => client.group('g').waitUntilEnded()],
  ['waitUntilEnded of a run', 95_000, (client) => client.run('r').waitUntilEnded({ timeout: '2m' })],
  ['output of a run', 95_000, (client) => client.run('r').output()],
  ['events of a task', 95_000, (client) => last(client.taskEvents('cpu-1'))],
  ['events of a group', 95_000, (client) => last(client.group('g').events())],
  ['cancel', 25_000, (client) => client.cancel('cpu-1', { wait: '30s' })],
  ['command', 25_000, (client) => client.command({ action: 'pause', queue: 'cpu' }, { wait: '30s' })],
  ['commandById', 25_000, (client) => client.commandById('c', { wait: '30s' })],
  ['enqueue into a full queue', 25_000, (client) => client.enqueueNamed('a', null, block)],
  [
    'bulk enqueue into a full queue',
    25_000,
    (client) => client.enqueueBulkNamed([{ task: 'a', input: null, ...block }]),
  ],
]

const OVER: Readonly<Record<string, unknown>> = {
  ...{ 'events of a task': { type: 'ended' }, 'events of a group': { type: 'group_ended' } },
  ...{ 'waitUntilFinished of a task': { status: 'completed' }, 'output of a run': 16 },
  ...{ 'waitUntilEnded of a group': { state: 'ended' }, 'waitUntilEnded of a run': { state: 'ended' } },
  ...{ cancel: { outcome: 'cancelled' }, command: { outcome: 'done' }, commandById: { outcome: 'done' } },
}

describe('behind a gateway that ends requests', () => {
  afterEach(() => vi.useRealTimers())

  /** Runs the wait in fake time. */
  async function waitBehind(
    given: Parameters<typeof gateway>[0],
    wait: (client: Client) => Promise<unknown>,
    retryFor: Duration = '5s',
  ) {
    vi.useFakeTimers()
    const { fetch, paths } = gateway(given)
    const beganAt = performance.now()
    let tookMs = Number.POSITIVE_INFINITY
    let outcome: PromiseSettledResult<unknown> | undefined
    const client = createClient({ transport: http('http://api', 'k', { fetch }), retryFor })
    void Promise.allSettled([wait(client)]).then(([settled]) => {
      outcome = settled
      tookMs = performance.now() - beganAt
    })
    await vi.advanceTimersByTimeAsync(180_000)
    return { outcome, tookMs, paths }
  }

  for (const [kind, endsAtMs, wait] of WAITS) {
    const cases = CUTS.flatMap((cut) => [4_000, 11_000, 29_000].map((cutAfterMs) => [cut, cutAfterMs] as const))
    test.each(cases)(`${kind} goes on if %s ends each request after %i ms`, async (cut, cutAfterMs) => {
      const { outcome, tookMs } = await waitBehind({ cut, cutAfterMs, endsAtMs }, wait)
      expect(outcome).toMatchObject({ status: 'fulfilled', ...(kind in OVER && { value: OVER[kind] }) })
      // A pause between two tries delays the response.
      expect(tookMs).toBeGreaterThanOrEqual(endsAtMs)
      expect(tookMs).toBeLessThan(endsAtMs + 3_000)
    })
  }

  // A call that stores something gets no response that would start its time again.
  test.each(WAITS.filter(([kind]) => !kind.startsWith('enqueue') && !kind.startsWith('bulk')))(
    '%s goes on over an API that is up for 2 s and down for 5 s, again and again',
    async (_, endsAtMs, wait) => {
      const cutAfterMs = (arrivedAtMs: number): number => Math.max(0, 2_000 - (arrivedAtMs % 7_000))
      const { outcome, tookMs } = await waitBehind({ cut: 'reset', cutAfterMs, endsAtMs }, wait, '10s')
      expect(outcome).toMatchObject({ status: 'fulfilled' })
      expect(tookMs).toBeGreaterThanOrEqual(endsAtMs)
      expect(tookMs).toBeLessThan(endsAtMs + 7_000)
    },
  )

  const silentTask = defineTask({ name: 'a', queue: 'cpu', input: z.object({}) })
  /** The first try of a wait may also wait for 30 s. */
  const SILENT: readonly (readonly [kind: string, firstTryMs: number, call: (client: Client) => Promise<unknown>])[] = [
    ['a look-up', 10_000, (client) => client.task('cpu-1')],
    ['an enqueue', 10_000, (client) => client.enqueue(silentTask, {})],
    ['a stream of events', 10_000, (client) => last(client.taskEvents('cpu-1'))],
    ['a wait', 40_000, (client) => client.waitUntilFinished('cpu-1')],
  ]

  test.each(SILENT)('%s is repeated while a gateway accepts requests and answers none', async (_, firstTryMs, call) => {
    const silent = { cut: 'reset', cutAfterMs: Number.POSITIVE_INFINITY, endsAtMs: 0 } as const
    const back = await waitBehind({ ...silent, silentUntilMs: firstTryMs + 6_000 }, call, '10s')
    expect(back.outcome).toMatchObject({ status: 'fulfilled' })
    expect(back.tookMs).toBeLessThan(firstTryMs + 10_000)
    const away = await waitBehind({ ...silent, silentUntilMs: 1_000_000 }, call, '10s')
    expect(away.outcome).toMatchObject({ status: 'rejected', reason: { code: 'unreachable' } })
    expect(away.paths.length).toBeGreaterThanOrEqual(5)
    // The last try begins at the end of the 10 s, and may take as long as any other.
    expect(away.tookMs).toBeGreaterThanOrEqual(firstTryMs + 17_900)
    expect(away.tookMs).toBeLessThan(firstTryMs + 20_100)
  })

  test('a stream that opens after such a silence stays open', async () => {
    const given = {
      cut: 'reset',
      cutAfterMs: Number.POSITIVE_INFINITY,
      endsAtMs: 60_000,
      silentUntilMs: 16_000,
    } as const
    const { outcome, paths } = await waitBehind(given, (client) => last(client.taskEvents('cpu-1')), '10s')
    expect(outcome).toMatchObject({ status: 'fulfilled', value: { type: 'ended' } })
    expect(paths).toHaveLength(5)
  })

  test('a wait with a limit of its own ends after this time, and returns what is known', async () => {
    const wait = (client: Client) => client.command({ action: 'pause', queue: 'cpu' }, { wait: '10s' })
    const { outcome, tookMs } = await waitBehind({ cut: 504, cutAfterMs: 4_000, endsAtMs: 95_000 }, wait)
    expect(outcome).toMatchObject({ status: 'fulfilled', value: { outcome: 'pending' } })
    expect(tookMs).toBeLessThan(15_000)
  })

  test('a wait whose API no longer responds fails after retryFor', async () => {
    const { outcome, tookMs } = await waitBehind({ cut: 504, cutAfterMs: 0, endsAtMs: 95_000 }, (client) =>
      client.waitUntilFinished('cpu-1'),
    )
    expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 504, outcome: 'refused' } })
    expect(tookMs).toBeGreaterThanOrEqual(5_000)
    expect(tookMs).toBeLessThan(6_000)
  })

  test('a wait uses long polls, and one poll without a wait after a poll that was cut off', async () => {
    const { paths } = await waitBehind({ cut: 'reset', cutAfterMs: 29_000, endsAtMs: 40_000 }, (client) =>
      client.waitUntilFinished('cpu-1'),
    )
    expect(paths).toEqual(['/v1/tasks/cpu-1?wait=30', '/v1/tasks/cpu-1', '/v1/tasks/cpu-1?wait=30'])
  })
})

describe('over connections that break', () => {
  const view = (status: string) => ({
    ...{ id: 'cpu-1', task: 'a', version: 1, queue: 'cpu', status, priority: 0, input: null, output: 16, meta: {} },
    ...{ attemptsMade: 1, maxAttempts: 5, fencingToken: 1, tags: [], enqueuedAt: '2026-01-01T00:00:00.000Z' },
    ...{ attempts: [], links: { self: 's', cancel: 'c' } },
  })

  /** What a gateway writes, as bytes, before it closes the connection. After a complete response, it says that it will do so. */
  const BYTES = {
    'without a response': '',
    'in the status line': 'HTTP/1.1 20',
    'in the headers': 'HTTP/1.1 200 OK\r\ncontent-type: appl',
    'with an empty response': 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    'in the body': 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"id":"cpu',
    'in a chunk':
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n64\r\n{"id":"cpu',
    'in a body without a length': 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"id":"cpu',
    'with a 408': 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    'with a 502': 'HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 6\r\n\r\n<html>',
    'with a 504': 'HTTP/1.1 504 Gateway Timeout\r\ncontent-type: text/html\r\n\r\n<html>',
  }

  test.each(Object.entries(BYTES))('a wait goes on when each poll breaks %s', async (_, bytes) => {
    let polls = 0
    let tries = 0
    const answer = createServer(({ url, socket }, response) => {
      tries += 1
      if (url?.includes('wait=') && polls < 6) {
        polls += 1
        socket.end(bytes)
      } else
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify(view(polls < 6 ? 'active' : 'completed')))
    })
    const server = closeAfterTest(answer).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    // With one repeat for each poll that breaks, the wait goes on only if its time starts again.
    const client = createClient({ transport: http(url, 'k'), retryFor: '1ms' })
    expect(await client.waitUntilFinished('cpu-1')).toMatchObject({ status: 'completed' })
    expect([polls, tries]).toEqual([6, 12])
  })
})
