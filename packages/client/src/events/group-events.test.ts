// Streams of a group's events: on each transport, and over HTTP with readers that are cut off while the members run.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineHandler, defineTask, type StreamedEvent, TaskError } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { createWorker } from '@bullpen/worker'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createClient, type GroupStreamEvent, http } from '../index.ts'
import { problem, api as scriptedApi } from '../server.fixture.ts'
import { TRANSPORTS } from '../transports.fixture.ts'
import { serverSentEvents } from './event-source.ts'

const input = z.object({ n: z.int() })
const scan = defineTask({ name: 'scan.page', queue: 'scan', input })
const read = defineTask({ name: 'read.page', queue: 'read', input })
const bind = defineTask({ name: 'bind.book', queue: 'bind', input })
const brief = defineTask({ name: 'brief.task', queue: 'scan', kind: 'short', input })
const catalogue = defineCatalogue(scan, read, bind, brief)

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => ({ n: from + i }))
const silent = { debug() {}, info() {}, warn() {}, error() {} }

describe.each(TRANSPORTS)('over %s', (_, open) => {
  it('a group streams the events of its members, also in queues that it gains later, until it has ended', async () => {
    const namespace = `t-${randomUUID().slice(0, 12)}`
    // The leader cancels the members, and a client over Redis does not lead.
    const [[, openApi]] = TRANSPORTS
    if (open !== openApi) await openApi(catalogue, namespace)
    const client = createClient({ transport: await open(catalogue, namespace) })
    onTestFinished(() => client.close())
    const group = await client.createGroup()
    await group.add(scan, numbers(0, 2))
    await group.add(brief, [{ n: 7 }])
    const events: GroupStreamEvent[] = []
    for await (const event of group.events()) {
      events.push(event)
      if (events.length === 2) await group.add(bind, [{ n: 2 }])
      if (events.length === 3) await group.cancel({ by: 'ann' })
    }
    const about = (member: number) => ({ group: { id: group.id, member } })
    expect(events.slice(0, 3)).toMatchObject([
      { type: 'enqueued', queue: 'scan', ...about(0) },
      { type: 'enqueued', queue: 'scan', ...about(1) },
      { type: 'enqueued', queue: 'bind', ...about(3) },
    ])
    const ends = events.slice(3, -1) as Extract<StreamedEvent, { type: 'ended' }>[]
    expect(ends.map(({ type, status, group }) => [type, status, group?.member]).toSorted()).toEqual(
      [0, 1, 3].map((member) => ['ended', 'cancelled', member]),
    )
    expect(events.at(-1)).toMatchObject({
      type: 'group_ended',
      group: { id: group.id, result: 'cancelled', statuses: { cancelled: 4 } },
    })
  })

  it('a group that does not exist has no stream', async () => {
    const client = createClient({ transport: await open(catalogue, `t-${randomUUID().slice(0, 12)}`) })
    onTestFinished(() => client.close())
    const events = client.group(`group-${'0'.repeat(26)}`).events()
    await expect(events.next()).rejects.toMatchObject({ code: 'group_not_found' })
  })
})

it.each([
  ['all members run', 'continue', undefined],
  ['the first error cancels the others', 'cancel', 8],
] as const)('a reader that is cut off every few events sees each of them once when %s', async (_, onError, unlucky) => {
  const [namespace, key] = [`t-${randomUUID().slice(0, 12)}`, randomUUID()]
  const common = { redisUrl: inject('redisUrl'), namespace }
  const api = await createApi({ catalogue, log: silent, config: { ...common, keys: [key], port: 0, metricsPort: 0 } })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const handle = async ({
    input,
    signal,
  }: {
    readonly input: { readonly n: number }
    readonly signal: AbortSignal
  }) => {
    if (input.n === unlucky) throw new TaskError('unlucky', 'this page cannot be read', { retryable: false })
    if (unlucky === undefined) return
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    throw signal.reason
  }
  const handlers = {
    'scan.page': defineHandler(scan, import.meta.url, handle),
    'read.page': defineHandler(read, import.meta.url, handle),
    'bind.book': defineHandler(bind, import.meta.url, handle),
    'brief.task': defineHandler(brief, import.meta.url, handle),
  }
  const worker = createWorker({ catalogue, handlers, config: { ...common, port: 0, logLevel: 'silent' } })
  onTestFinished(async () => void (await worker.drain()))
  const client = createClient({ transport: http(url, key) })
  const group = await client.createGroup({ onError })
  await group.add(scan, numbers(0, 8))
  await group.add(read, numbers(8, 16))
  await group.add(bind, numbers(16, 24), { seal: true })

  const seen: GroupStreamEvent[] = []
  let [last, connections] = ['', 0]
  while (seen.at(-1)?.type !== 'group_ended') {
    connections++
    const connection = new AbortController()
    const response = await fetch(`${url}/v1/groups/${group.id}/events`, {
      headers: { authorization: `Bearer ${key}`, ...(last !== '' && { 'last-event-id': last }) },
      signal: connection.signal,
    })
    let received = 0
    for await (const { id, data } of serverSentEvents(response.body as ReadableStream<Uint8Array>)) {
      last = id ?? last
      if (data === undefined) continue
      seen.push(JSON.parse(data))
      received++
      if (received === 5) break
    }
    connection.abort()
    if (connections === 2) await worker.start()
  }

  const types = (member: number): readonly string[] =>
    seen.flatMap((event) =>
      'group' in event && 'taskId' in event && event.group?.member === member ? [event.type] : [],
    )
  const { statuses, result } = await group.describe()
  expect(seen.at(-1)).toMatchObject({ type: 'group_ended', group: { count: 24, ended: 24, statuses, result } })
  expect(result).toBe(unlucky === undefined ? 'completed' : 'failed')
  const isStarted = (member: number): boolean => types(member).includes('started')
  for (const { n } of numbers(0, 24)) {
    expect(types(n)).toEqual(isStarted(n) ? ['enqueued', 'started', 'ended'] : ['enqueued', 'ended'])
  }
  if (unlucky === undefined) expect(seen).toHaveLength(24 * 3 + 1)
  else expect(statuses).toMatchObject({ dead: 1, cancelled: 23 })
  expect(connections).toBeGreaterThan(9)
  const { length } = seen.filter(({ type }) => type === 'gap' || type === 'snapshot')
  expect(length).toBe(0)
})

it('a stream of a group ends only with the event that says that the group has ended', async () => {
  const id = `group-${'0'.repeat(26)}`
  const frame = (eventId: string, event: object): string => `id: ${eventId}\ndata: ${JSON.stringify(event)}\n\n`
  const group = { id, state: 'ended', result: 'completed' }
  const headers = { 'content-type': 'text/event-stream' }
  const { client, seen } = await scriptedApi([
    [200, frame('a:1-0,b:2-0', { type: 'snapshot', id: 'a:1-0,b:2-0', group }), headers],
    problem('redis_unavailable', 503),
    [200, frame('a:3-0,b:2-0', { type: 'group_ended', id: 'a:3-0,b:2-0', group }), headers],
  ])
  const events: string[] = []
  for await (const event of client.group(id).events()) events.push(event.type)
  expect(events).toEqual(['snapshot', 'group_ended'])
  expect(seen.map(({ url, headers }) => [url, headers['last-event-id']])).toEqual(
    [undefined, 'a:1-0,b:2-0', 'a:1-0,b:2-0'].map((position) => [`/v1/groups/${id}/events`, position]),
  )
  await eventually(() => seen.length === 3)
})
