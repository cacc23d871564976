// Streams of events over real sockets: what a reader receives, how it resumes, and when it is disconnected.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { defineCatalogue, defineTask, type TaskId } from '@bullpen/contract'
import { createGroupId, createTaskId, type EventBody, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newGroup } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { KEY, problemIn, testApi } from '../../api.fixture.ts'
import { STREAM_SUBJECTS } from '../../http/open-streams.ts'
import type { ServerOptions } from '../../http/server.ts'

const mail = defineTask({ name: 'mail.send', queue: 'mail', input: z.object({}) })
const report = defineTask({ name: 'report.build', queue: 'report', input: z.object({}) })
const brief = defineTask({ name: 'brief.task', queue: 'brief', kind: 'short', input: z.object({}) })
const catalogue = defineCatalogue(mail, report, brief)

interface Received {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: Record<string, unknown>
}

async function setup(more: Partial<ServerOptions> = {}) {
  const api = await testApi({ catalogue, ...more })
  await api.app.listen({ host: '127.0.0.1', port: 0 })
  const { broker } = api
  let follows = 0
  // Counts how often the feeds follow a stream.
  for (const queue of catalogue.queues) {
    const stream = broker.events(queue)
    const { follow } = stream
    Object.assign(stream, {
      follow(...args: Parameters<typeof follow>) {
        follows++
        return follow(...args)
      },
    })
  }

  /** Reads a stream until it ends or the test does. */
  const read = async (path: string, lastEventId?: string) => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    }
    const call = request(`${api.app.listeningOrigin}${path}`, { headers })
    onTestFinished(() => void call.destroy())
    call.end()
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    const received: Received[] = []
    const comments: string[] = []
    const ended = (async () => {
      let text = ''
      for await (const chunk of response) {
        text += String(chunk)
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          const fields = new Map(
            block.split('\n').map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
          )
          const data = fields.get('data')
          if (data === undefined) comments.push(block)
          else received.push({ id: fields.get('id'), event: fields.get('event'), data: JSON.parse(data) })
        }
      }
    })().catch(() => {})
    return { response, received, comments, ended, stop: () => void call.destroy() }
  }

  const add = (id: TaskId, body: EventBody, count = 10_000): void => {
    const queue = id.slice(0, id.lastIndexOf('-'))
    broker.streams.get(queue)?.add(id, body, count)
  }
  const put = (task: { readonly name: string; readonly queue: string }): TaskId => {
    const id = createTaskId(task.queue, Date.now(), randomBytes(ID_RANDOM_BYTES))
    broker.put({ id, task: task.name, queue: task.queue, status: 'waiting' })
    return id
  }
  return { ...api, read, add, put, follows: () => follows }
}

const about = { task: mail.name }
const attempt = { attempt: 1, fencingToken: 1 }
const started: EventBody = { type: 'started', ...about, ...attempt, worker: 'w:1' }
const ended: EventBody = { type: 'ended', ...about, ...attempt, outcome: 'succeeded', status: 'completed' }
const progress = (fraction: number): EventBody => ({ type: 'progress', ...about, ...attempt, fraction })

const typesOf = (received: readonly Received[]): readonly unknown[] => received.map(({ event }) => event)

it('a task is streamed from its enqueued event until it has ended', async () => {
  const { read, add, put, broker } = await setup()
  const id = put(mail)
  add(id, { type: 'enqueued', ...about, tags: ['a'] })
  add(put(mail), { type: 'enqueued', ...about })
  const { response, received, ended: over } = await read(`/v1/tasks/${id}/events`)
  expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  expect(response.headers['cache-control']).toBe('no-store')
  await eventually(() => received.length === 1)
  add(id, started)
  await eventually(() => received.length === 2)
  broker.change(id, { status: 'completed' })
  add(id, ended)
  await over
  expect(typesOf(received)).toEqual(['enqueued', 'started', 'ended'])
  expect(received[0]?.data).toEqual({
    type: 'enqueued',
    id: received[0]?.id,
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    queue: 'mail',
    taskId: id,
    task: mail.name,
    tags: ['a'],
  })
})

it('a task whose enqueued event is no longer kept is streamed from a snapshot', async () => {
  const { read, add, put, broker } = await setup()
  const id = put(mail)
  add(id, progress(0.5))
  const { received, ended: over } = await read(`/v1/tasks/${id}/events`)
  await eventually(() => received.length === 1)
  broker.change(id, { status: 'completed' })
  add(id, ended)
  await over
  expect(typesOf(received)).toEqual(['snapshot', 'ended'])
  expect(received[0]?.data).toMatchObject({ task: { id, status: 'waiting' } })
})

it('the stream of a task that has ended without an event is a snapshot', async () => {
  const { read, put, broker } = await setup()
  const id = put(mail)
  broker.change(id, { status: 'cancelled' })
  const { received, ended: over } = await read(`/v1/tasks/${id}/events`)
  await over
  expect(received.map(({ data }) => data)).toMatchObject([{ type: 'snapshot', task: { status: 'cancelled' } }])
})

it('a reader that resumes in the middle sees every event once', async () => {
  const { read, add, put, broker } = await setup()
  const id = put(mail)
  add(id, { type: 'enqueued', ...about })
  add(id, started)
  const seen: Received[] = []
  let last: string | undefined
  for (let n = 1; n <= 20; n++) {
    const reader = await read(`/v1/tasks/${id}/events`, last)
    add(id, progress(n / 20))
    const expected = n === 1 ? 3 : 1
    await eventually(() => reader.received.length >= expected)
    seen.push(...reader.received)
    last = reader.received.at(-1)?.id
    reader.stop()
    await reader.ended
  }
  broker.change(id, { status: 'completed' })
  add(id, ended)
  const reader = await read(`/v1/tasks/${id}/events`, last)
  await reader.ended
  seen.push(...reader.received)
  expect(typesOf(seen)).toEqual(['enqueued', 'started', ...Array.from({ length: 20 }, () => 'progress'), 'ended'])
  expect(new Set(seen.map(({ id }) => id)).size).toBe(23)
})

it.each([
  { reader: 'opens the stream', resumes: false },
  { reader: 'resumes it', resumes: true },
])('if a task ends while a reader $reader, the reader receives its events up to the end', async ({ resumes }) => {
  const { read, add, put, broker } = await setup()
  const id = put(mail)
  add(id, { type: 'enqueued', ...about })
  const first = await read(`/v1/tasks/${id}/events`)
  await eventually(() => first.received.length === 1)
  first.stop()
  // Until the test ends, the store has events that no feed receives.
  const stream = broker.streams.get('mail')
  stream?.delay()
  const next = resumes ? id : put(mail)
  if (!resumes) add(next, { type: 'enqueued', ...about })
  add(next, started)
  add(put(mail), { type: 'enqueued', ...about })
  add(next, ended)
  broker.change(next, { status: 'completed' })
  const { received, ended: over } = await read(
    `/v1/tasks/${next}/events`,
    resumes ? first.received.at(-1)?.id : undefined,
  )
  await over
  expect(typesOf(received)).toEqual([...(resumes ? [] : ['enqueued']), 'started', 'ended'])
})

it('an event that the store has before the feed is passed on once', async () => {
  const { read, add, put, broker } = await setup()
  const other = await read(`/v1/tasks/${put(mail)}/events`)
  await eventually(() => other.received.length === 1)
  const id = put(mail)
  const catchUp = broker.streams.get('mail')?.delay()
  add(id, { type: 'enqueued', ...about })
  add(id, started)
  const { received, ended: over } = await read(`/v1/tasks/${id}/events`)
  await eventually(() => received.length === 2)
  catchUp?.()
  add(id, progress(0.5))
  broker.change(id, { status: 'completed' })
  add(id, ended)
  await over
  expect(typesOf(received)).toEqual(['enqueued', 'started', 'progress', 'ended'])
})

it('the events of a task that has been removed are streamed while they are kept', async () => {
  const { read, add, put, broker } = await setup()
  const id = put(mail)
  add(id, { type: 'enqueued', ...about })
  add(id, started)
  const first = await read(`/v1/tasks/${id}/events`)
  await eventually(() => first.received.length === 2)
  first.stop()
  add(id, ended)
  broker.remove(id)
  const all = await read(`/v1/tasks/${id}/events`)
  await all.ended
  expect(typesOf(all.received)).toEqual(['enqueued', 'started', 'ended'])
  const resumed = await read(`/v1/tasks/${id}/events`, first.received.at(-1)?.id)
  await resumed.ended
  expect(typesOf(resumed.received)).toEqual(['ended'])
  const over = await read(`/v1/tasks/${id}/events`, resumed.received.at(-1)?.id)
  expect(over.response.statusCode).toBe(404)
})

it('a reader that resumes after the end receives the end as a snapshot', async () => {
  const { read, add, put, broker } = await setup()
  const id = put(mail)
  add(id, started)
  broker.change(id, { status: 'completed' })
  add(id, ended)
  const { received, ended: over } = await read(`/v1/tasks/${id}/events`)
  await over
  const resumed = await read(`/v1/tasks/${id}/events`, received.at(-1)?.id)
  await resumed.ended
  expect(resumed.received).toMatchObject([{ event: 'snapshot', data: { task: { status: 'completed' } } }])
})

it('a reader that resumes beyond what is kept receives a gap and a snapshot, and then what follows', async () => {
  const { read, add, put } = await setup()
  const id = put(mail)
  for (let n = 0; n < 300; n++) add(id, progress(n / 300), 100)
  const { received } = await read(`/v1/tasks/${id}/events`, '1-0')
  await eventually(() => received.length === 2)
  add(id, progress(1))
  await eventually(() => received.length === 3)
  expect(received).toMatchObject([
    { event: 'gap', data: { id: '1-0' } },
    { event: 'snapshot', data: { task: { id } } },
    { event: 'progress', data: { fraction: 1 } },
  ])
  const resumed = await read(`/v1/tasks/${id}/events`, received[1]?.id)
  await eventually(() => resumed.received.length === 1)
  expect(resumed.received[0]?.data).toMatchObject({ fraction: 1 })
})

it('a queue is streamed from a snapshot of its counts, with all of its tasks', async () => {
  const { read, add, put } = await setup()
  const [first, second] = [put(mail), put(mail)]
  add(first, { type: 'enqueued', ...about })
  const { received } = await read('/v1/queues/mail/events')
  await eventually(() => received.length === 1)
  add(first, started)
  add(put(report), { type: 'enqueued', task: report.name })
  add(second, { type: 'enqueued', ...about })
  await eventually(() => received.length === 3)
  expect(typesOf(received)).toEqual(['snapshot', 'started', 'enqueued'])
  expect(received[0]?.data).toMatchObject({ queues: { mail: { waiting: expect.any(Number) } } })
})

it('the events of tasks with a tag come from all queues, and are resumed with one cursor', async () => {
  const { read, add, put } = await setup()
  const tagged = { tags: ['order-7', 'x'] }
  const { received, stop } = await read('/v1/events?tag=order-7')
  await eventually(() => received.length === 1)
  add(put(mail), { type: 'enqueued', ...about, ...tagged })
  add(put(mail), { type: 'enqueued', ...about, tags: ['order-8'] })
  add(put(report), { type: 'enqueued', task: report.name, ...tagged })
  await eventually(() => received.length === 3)
  stop()
  add(put(report), { type: 'enqueued', task: report.name, ...tagged })
  add(put(mail), { type: 'enqueued', ...about })
  const resumed = await read('/v1/events?tag=order-7', received.at(-1)?.id)
  await eventually(() => resumed.received.length === 1)
  add(put(mail), { type: 'enqueued', ...about, ...tagged })
  await eventually(() => resumed.received.length === 2)
  expect(received.map(({ data }) => data['queue'])).toEqual([undefined, 'mail', 'report'])
  expect(resumed.received.map(({ data }) => data['queue'])).toEqual(['report', 'mail'])
})

it('a quiet stream contains heartbeats', async () => {
  const { read, put } = await setup({ eventTimes: { heartbeatMs: 20 } })
  const { comments } = await read(`/v1/tasks/${put(mail)}/events`)
  await eventually(() => comments.filter((each) => each === ': heartbeat').length >= 2)
  expect(comments[0]).toBe('retry: 1000')
})

it('when the API shuts down, every stream ends with a reason and a hint when to resume', async () => {
  const { app, read, put, closing } = await setup()
  const readers = await Promise.all([read(`/v1/tasks/${put(mail)}/events`), read('/v1/queues/mail/events')])
  await eventually(() => readers.every(({ received }) => received.length === 1))
  closing.abort()
  await Promise.all(readers.map(({ ended }) => ended))
  for (const { received } of readers) {
    expect(received.at(-1)).toEqual({
      id: undefined,
      event: 'disconnected',
      data: { type: 'disconnected', reason: 'shutting_down' },
    })
  }
  await app.close()
})

it('a reader that does not read is disconnected, and changes nothing for the others', async () => {
  const { app, read, add, put, lines } = await setup({ eventTimes: { slowReaderMs: 200 } })
  const id = put(mail)
  const { port } = new URL(app.listeningOrigin)
  const socket = connect(Number(port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.pause()
  socket.write(`GET /v1/queues/mail/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`)
  const { received } = await read('/v1/queues/mail/events')
  await eventually(() => received.length === 1)
  const message = 'x'.repeat(1_000)
  let sent = 0
  const send = (): void => {
    for (let n = 0; n < 500; n++) add(id, { type: 'log', ...about, ...attempt, line: sent + n, level: 'info', message })
    sent += 500
  }
  // The kernel's buffers take some megabytes.
  const isDisconnected = (): boolean => lines.some(({ message }) => message === 'slow reader of events disconnected')
  await eventually(async () => {
    if (!isDisconnected()) send()
    const all = sent
    await eventually(() => received.length === 1 + all)
    return isDisconnected()
  })
  expect(received).toHaveLength(1 + sent)
  // If the reader reads at last, it sees the reason.
  let text = ''
  socket.on('data', (chunk) => {
    text = (text + chunk.toString()).slice(-200)
  })
  socket.resume()
  await eventually(() => text.includes('"reason":"slow_reader"'))
})

it('a reader that sends bytes which are not HTTP is disconnected, and receives only events', async () => {
  const { app, add, put, streams } = await setup()
  const id = put(mail)
  const socket = connect(Number(new URL(app.listeningOrigin).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  socket.write(`GET /v1/queues/mail/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`)
  await eventually(() => text.includes('retry: '))
  add(id, started)
  await eventually(() => text.includes('event: started'))
  const before = text
  const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve))
  socket.write('hello\r\n\r\n')
  await closed
  expect(text).toBe(before)
  await eventually(() => STREAM_SUBJECTS.every((subject) => streams.count(subject) === 0))
})

it('a thousand readers share one follower of the stream', async () => {
  const { read, add, put, follows } = await setup()
  const ids = Array.from({ length: 100 }, () => put(mail))
  const readers = await Promise.all(ids.map((id) => read(`/v1/tasks/${id}/events`)))
  await eventually(() => readers.every(({ received }) => received.length === 1))
  for (const id of ids) add(id, started)
  await eventually(() => readers.every(({ received }) => received.length === 2))
  expect(follows()).toBe(1)
})

it('a stream that cannot be opened is a problem', async () => {
  const { get, put, broker } = await setup()
  const unknown = createTaskId('mail', Date.now(), randomBytes(ID_RANDOM_BYTES))
  expect(problemIn(await get(`/v1/tasks/${unknown}/events`))).toMatchObject({ code: 'task_not_found' })
  expect(problemIn(await get(`/v1/tasks/${put(brief)}/events`))).toMatchObject({ code: 'no_events', status: 409 })
  expect(problemIn(await get('/v1/queues/elsewhere/events'))).toMatchObject({ code: 'queue_not_found' })
  expect(problemIn(await get('/v1/queues/brief/events'))).toMatchObject({ code: 'no_events' })
  expect(problemIn(await get('/v1/events'))).toMatchObject({ code: 'invalid_request' })
  expect(problemIn(await get(`/v1/tasks/${put(mail)}/events`, { 'last-event-id': 'seven' }))).toMatchObject({
    code: 'invalid_cursor',
  })
  expect(problemIn(await get('/v1/queues/mail/events', { authorization: 'Bearer wrong' }))).toMatchObject({
    code: 'unauthorized',
  })
  const id = put(mail)
  broker.trouble = 'down'
  expect(problemIn(await get(`/v1/tasks/${id}/events`))).toMatchObject({ code: 'redis_unavailable' })
})

it('the open streams are counted by their subject', async () => {
  const { read, put, broker, streams } = await setup()
  const group = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  await broker.groups.create(newGroup(group, {}, 'ann'))
  const paths = [`/v1/tasks/${put(mail)}`, '/v1/queues/mail', `/v1/groups/${group}`].map((path) => `${path}/events`)
  const readers = await Promise.all([...paths, '/v1/events?tag=a', '/v1/events?tag=b'].map((path) => read(path)))
  const counts = () => STREAM_SUBJECTS.map(streams.count)
  expect(counts()).toEqual([1, 1, 2, 1])
  for (const { stop } of readers) stop()
  await eventually(() => counts().every((count) => count === 0))
})

it('a stream of a group that cannot be opened is a problem', async () => {
  const { get, broker } = await setup()
  const id = createGroupId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  expect(problemIn(await get(`/v1/groups/${id}/events`))).toMatchObject({ code: 'group_not_found' })
  expect(problemIn(await get('/v1/groups/mail-1/events'))).toMatchObject({ code: 'group_not_found' })
  await broker.groups.create(newGroup(id, {}, 'ann'))
  expect(problemIn(await get(`/v1/groups/${id}/events`, { 'last-event-id': 'seven' }))).toMatchObject({
    code: 'invalid_cursor',
  })
  expect(problemIn(await get(`/v1/groups/${id}/events`, { authorization: 'Bearer wrong' }))).toMatchObject({
    code: 'unauthorized',
  })
  broker.trouble = 'down'
  expect(problemIn(await get(`/v1/groups/${id}/events`))).toMatchObject({ code: 'redis_unavailable' })
})

it('a HEAD request does not open a stream', async () => {
  const { ask, put } = await setup()
  const response = await ask({ method: 'HEAD', url: `/v1/tasks/${put(mail)}/events` })
  expect([response.statusCode, response.body]).toEqual([200, ''])
})
