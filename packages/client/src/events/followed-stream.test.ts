// Streams of events in a client: on each transport, and with servers that break off.
import { randomUUID } from 'node:crypto'
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { ProblemError } from '@bullpen/contract/internal'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { createClient } from '../index.ts'
import { api, problem } from '../server.fixture.ts'
import { pauseFor } from '../time-limit.ts'
import { TRANSPORTS } from '../transports.fixture.ts'
import { serverSentEvents } from './event-source.ts'
import { followStream } from './followed-stream.ts'

const report = defineTask({ name: 'report.build', queue: 'reports', input: z.object({ n: z.int() }) })
const brief = defineTask({ name: 'brief.task', queue: 'reports', kind: 'short', input: z.object({}) })
const catalogue = defineCatalogue(report, brief)

describe.each(TRANSPORTS)('over %s', (_, open) => {
  it('a handle streams what happens to its task, from the enqueue to the end', async () => {
    const client = createClient({ transport: await open(catalogue, `t-${randomUUID().slice(0, 12)}`) })
    onTestFinished(() => client.close())
    const task = await client.enqueue(report, { n: 1 }, { tags: ['a'] })
    const events: { readonly type: string }[] = []
    for await (const event of task.events()) {
      events.push(event)
      if (event.type === 'enqueued') await task.cancel({ by: 'ann' })
    }
    expect(events).toMatchObject([
      { type: 'enqueued', taskId: task.id, task: 'report.build', queue: 'reports', tags: ['a'] },
      { type: 'ended', status: 'cancelled', by: expect.stringMatching(/^ann/) },
    ])
  })

  it('a stream that the API rejects throws the problem', async () => {
    const client = createClient({ transport: await open(catalogue, `t-${randomUUID().slice(0, 12)}`) })
    onTestFinished(() => client.close())
    const task = await client.enqueue(brief, {})
    await expect(task.events().next()).rejects.toMatchObject({ code: 'no_events' })
    await expect(client.taskEvents('reports-01jd3v7n8q0000000000000000').next()).rejects.toMatchObject({
      code: 'task_not_found',
    })
  })

  it('a stream ends when its signal aborts', async () => {
    const client = createClient({ transport: await open(catalogue, `t-${randomUUID().slice(0, 12)}`) })
    onTestFinished(() => client.close())
    const task = await client.enqueue(report, { n: 1 })
    const stop = new AbortController()
    const events = task.events({ signal: stop.signal })
    expect((await events.next()).value).toMatchObject({ type: 'enqueued' })
    const next = events.next()
    stop.abort(new Error('enough'))
    await expect(next).rejects.toThrow('enough')
  })
})

const ID = 'reports-01jd3v7n8q0000000000000000'
const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8' }
const frame = (id: string, event: object): string => `id: ${id}\nevent: x\ndata: ${JSON.stringify(event)}\n\n`
const about = { at: '2030-01-01T00:00:00.000Z', queue: 'reports', taskId: ID, task: 'report.build' }
const started = (id: string) => frame(id, { type: 'started', id, ...about, attempt: 1, fencingToken: 1, worker: 'w:1' })
const ended = (id: string) => frame(id, { type: 'ended', id, ...about, status: 'completed' })

it('a stream that breaks off is resumed after its last event', async () => {
  const { client, seen } = await api([
    [200, `retry: 1\n\n${started('1-0')}${started('2-0')}`, HEADERS],
    'break',
    problem('redis_unavailable', 503),
    [200, `${frame('2-1', { type: 'from_the_future' })}id: 2-2\n\n`, HEADERS],
    [200, `retry: 5\nevent: disconnected\ndata: {"type":"disconnected","reason":"shutting_down"}\n\n`, HEADERS],
    [200, `: heartbeat\n\n${started('3-0')}${ended('4-0')}`, HEADERS],
  ])
  const events: string[] = []
  for await (const event of client.taskEvents(ID)) events.push(`${event.type} ${event.id}`)
  expect(events).toEqual(['started 1-0', 'started 2-0', 'started 3-0', 'ended 4-0'])
  expect(seen.map(({ headers }) => headers['last-event-id'])).toEqual([
    undefined,
    ...Array(3).fill('2-0'),
    // The client passes over an event that it does not know, and a position without an event.
    ...Array(2).fill('2-2'),
  ])
  expect(seen[0]).toMatchObject({
    method: 'GET',
    url: `/v1/tasks/${ID}/events`,
    headers: { authorization: 'Bearer k' },
  })
})

it('a stream that stays unavailable throws after retryFor, and not before', async () => {
  const { client } = await api([[200, started('1-0'), HEADERS], 'break'], { retryFor: '300ms' })
  const events = client.taskEvents(ID)
  expect((await events.next()).value).toMatchObject({ type: 'started' })
  const since = performance.now()
  await expect(events.next()).rejects.toMatchObject({ code: 'unreachable' })
  // The first failure follows a pause of at least 80 ms. A timer may fire 1 ms early.
  expect(performance.now() - since).toBeGreaterThanOrEqual(379)
})

it('a quiet stream is resumed however often its connection is lost', async () => {
  // Nothing happens in the queue, so that the client receives only what the API sends to every reader.
  const quiet = [200, 'retry: 1\n\n: heartbeat\n\n', HEADERS] as const
  const broken = Array.from({ length: 4 }, () => [quiet, 'break'] as const).flat()
  const { client, seen } = await api([[200, started('1-0'), HEADERS], ...broken, [200, ended('2-0'), HEADERS]], {
    retryFor: '200ms',
  })
  const types: string[] = []
  for await (const { type } of client.events({ queue: 'reports' })) {
    types.push(type)
    if (type === 'ended') break
  }
  expect(types).toEqual(['started', 'ended'])
  expect(seen).toHaveLength(10)
})

it('a connection that is lost while the reader takes its time over an event does not count as silent', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let tries = 0
  const follow = followStream(
    async function* (_after, signal) {
      const event = { at: '', id: '', queue: 'reports', taskId: ID, task: 'report.build' }
      if (tries++ === 0) {
        yield { id: '1-0', retryMs: undefined, event: { ...event, type: 'progress', attempt: 1, percent: 1 } as never }
        throw new ProblemError({ code: 'unreachable' })
      }
      await pauseFor(5_000, signal)
      yield { id: '2-0', retryMs: undefined, event: { ...event, type: 'ended', status: 'completed' } as never }
    },
    { signal: undefined, retryForMs: 10_000, isLast: ({ type }) => type === 'ended' },
  )
  const types: string[] = []
  const read = (async () => {
    for await (const { type } of follow) {
      types.push(type)
      await pauseFor(3_000, undefined)
    }
  })()
  await vi.advanceTimersByTimeAsync(30_000)
  await read
  expect({ types, tries }).toEqual({ types: ['progress', 'ended'], tries: 2 })
})

it('a stream that opens after a silent try still follows the signal of its reader', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const stop = new AbortController()
  let isSilent = true
  const follow = followStream(
    async function* (_after, signal) {
      if (isSilent) {
        isSilent = false
        await pauseFor(3_000, signal)
        throw new ProblemError({ code: 'unreachable' })
      }
      yield { id: '1-0', retryMs: undefined, event: { type: 'progress' } as never }
      await pauseFor(60_000, signal)
    },
    { signal: stop.signal, retryForMs: 10_000, isLast: () => false },
  )
  const opened = follow.next()
  await vi.advanceTimersByTimeAsync(4_000)
  expect(await opened).toMatchObject({ value: { type: 'progress' } })
  const ended = follow.next().catch((reason: unknown) => reason)
  stop.abort('enough')
  await vi.advanceTimersByTimeAsync(1)
  expect(await Promise.race([ended, 'none'])).toBe('enough')
})

it('a queue and a tag are streamed until the reader leaves', async () => {
  const { client, seen } = await api([
    [200, `${frame('1-0', { type: 'snapshot', id: '1-0', queues: {} })}${started('2-0')}`, HEADERS],
  ])
  for await (const event of client.events({ queue: 'reports' })) {
    if (event.type === 'started') break
  }
  for await (const event of client.events({ tag: 'order:7' })) {
    expect(event.type).toBe('snapshot')
    break
  }
  await eventually(() => seen.length === 2)
  expect(seen.map(({ url }) => url)).toEqual(['/v1/queues/reports/events', '/v1/events?tag=order%3A7'])
})

it('events are parsed however they are divided into chunks', async () => {
  const text = 'retry: 7\r\n\r\nid: 1\ndata: {"ü":1}\n\n: comment\nid\ndata:a\ndata: b\n\nid: 9\n\ndata: unfinished'
  const bytes = new TextEncoder().encode(text)
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const chunks = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    }
    const events: unknown[] = []
    for await (const event of serverSentEvents(chunks())) events.push(event)
    expect(events).toEqual([
      { id: undefined, data: undefined, retryMs: 7 },
      { id: '1', data: '{"ü":1}', retryMs: 7 },
      { id: '', data: 'a\nb', retryMs: 7 },
      { id: '9', data: undefined, retryMs: 7 },
    ])
  }
})
