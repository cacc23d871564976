// Tests the spans of a real API process and a real worker process: one trace from the HTTP request over the queue to all attempts, child
// tasks, follow-ups and members of a group.
import { randomUUID } from 'node:crypto'
import { spawnProgram } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it } from 'vitest'
import { API_KEY } from '../../../api/src/traced-api.fixture.ts'
import { type PrintedSpan, printedSpans } from './span-printer.fixture.ts'
import { invoice, pack, ship } from './traced-worker.fixture.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const GROUP_TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = '00f067aa0ba902b7'
const TRACESTATE = 'vendor=1,other=a:b;c'

function startPrograms() {
  const common = ['--redis-url', inject('redisUrl'), '--namespace', `t-${randomUUID().slice(0, 12)}`]
  const program = (name: string) => new URL(name, import.meta.url).pathname
  const api = spawnProgram(program('../../../api/src/traced-api.fixture.ts'), common, { BULLPEN_API_KEYS: API_KEY })
  const worker = spawnProgram(program('traced-worker.fixture.ts'), [...common, '--pools', 'traced=2'])
  return {
    worker,
    spans: () => [api, worker].flatMap((program) => printedSpans(program.output())),
    /** Sends a request that belongs to a trace. */
    async post<T>(traceId: string, path: string, body: object): Promise<T> {
      const url = await eventually(() => /listening on (\S+)/.exec(api.output())?.[1])
      const headers = {
        authorization: `Bearer ${API_KEY}`,
        'content-type': 'application/json',
        traceparent: `00-${traceId}-${CALLER}-01`,
        tracestate: TRACESTATE,
      }
      const response = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      expect(response.ok, `${path}: ${response.status}`).toBe(true)
      return (await response.json()) as T
    },
  }
}

it('a trace continues from an HTTP request over the queue to retries, child tasks, follow-ups and groups, whose spans say how each ended', async () => {
  const { worker, spans, post } = startPrograms()
  const of = (traceId: string, task: string, operation: string): readonly PrintedSpan[] =>
    spans().filter(
      (span) =>
        span.traceId === traceId &&
        span.attributes['bullpen.task'] === task &&
        span.attributes['messaging.operation.name'] === operation,
    )
  const { id } = await post<{ id: string }>(TRACE, 'tasks', { task: ship.name, input: { order: 7 } })
  const onEnd = [{ task: invoice.name, input: { order: 7 } }]
  const group = await post<{ id: string }>(GROUP_TRACE, 'groups', { onEnd })
  const tasks = [1, 2].map((each) => ({ task: pack.name, input: { order: each } }))
  await post(GROUP_TRACE, `groups/${group.id}/tasks`, { tasks, seal: true })
  await eventually(() => spans().length === 13 && worker.output().includes('thread '))
  worker.child.kill('SIGTERM')
  expect(await worker.exited).toBe(0)

  const process = { name: 'process traced', kind: 'CONSUMER', traceId: TRACE, tracestate: TRACESTATE }
  const send = { name: 'enqueue traced', kind: 'PRODUCER', traceId: TRACE, tracestate: TRACESTATE }
  const destination = { 'messaging.system': 'bullpen', 'messaging.destination.name': 'traced' }
  const conversation = { 'messaging.message.conversation_id': TRACE }
  const [request] = of(TRACE, 'order.ship', 'enqueue')
  expect(request).toMatchObject({ ...send, parent: CALLER, failed: false })
  expect(request?.attributes).toEqual({
    ...destination,
    ...conversation,
    'messaging.operation.name': 'enqueue',
    'messaging.operation.type': 'send',
    'messaging.message.id': id,
    'bullpen.task': 'order.ship',
    'bullpen.action': 'created',
  })
  const [first, second] = of(TRACE, 'order.ship', 'process')
  expect(first).toMatchObject({ ...process, parent: request?.spanId, failed: true })
  expect(first?.attributes).toEqual({
    ...destination,
    ...conversation,
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.message.id': id,
    'bullpen.task': 'order.ship',
    'bullpen.attempt': 1,
    'bullpen.fencing_token': 1,
    'bullpen.state': 'DONE_ERROR',
    'bullpen.verdict': 'retrying',
    'error.type': 'no_carrier',
  })
  expect(second).toMatchObject({ ...process, parent: request?.spanId, failed: false })
  expect(second?.attributes).toMatchObject({ 'bullpen.verdict': 'completed', 'bullpen.fencing_token': 2 })
  // A span that the handler makes is inside that of its attempt, and so is what the handler enqueues within that span.
  const booking = spans().find(({ name }) => name === 'book the carrier')
  expect(booking).toMatchObject({ traceId: TRACE, parent: second?.spanId })
  const [labelled] = of(TRACE, 'order.label', 'enqueue')
  expect(labelled).toMatchObject({ ...send, parent: booking?.spanId })
  const [child] = of(TRACE, 'order.label', 'process')
  expect(child).toMatchObject({ ...process, parent: labelled?.spanId, failed: false })
  // The handler in the thread knows its attempt's span, which is also the parent of what it enqueues.
  expect(worker.output()).toContain(`thread 00-${TRACE}-${child?.spanId}-01`)
  const [packed] = of(TRACE, 'order.pack', 'enqueue')
  expect(packed).toMatchObject({ ...send, parent: child?.spanId })
  expect(of(TRACE, 'order.pack', 'process')).toMatchObject([{ ...process, parent: packed?.spanId }])
  const [followUp] = of(TRACE, 'order.invoice', 'process')
  expect(followUp).toMatchObject({ ...process, parent: second?.spanId, failed: true })
  expect(followUp?.attributes).toMatchObject({
    'bullpen.follow_up_of': id,
    'bullpen.verdict': 'dead',
    'error.type': 'unexpected_error',
  })

  // One span enqueues both members of the group. The follow-up of the group belongs to the request that has created the group.
  const [added] = of(GROUP_TRACE, 'order.pack', 'enqueue')
  expect(added).toMatchObject({ name: 'enqueue traced', kind: 'PRODUCER', parent: CALLER })
  expect(added?.attributes).toMatchObject({ 'messaging.batch.message_count': 2, 'bullpen.group': group.id })
  const member = { parent: added?.spanId, attributes: { 'bullpen.group': group.id } }
  expect(of(GROUP_TRACE, 'order.pack', 'process')).toMatchObject([member, member])
  expect(of(GROUP_TRACE, 'order.invoice', 'process')).toMatchObject([
    { parent: CALLER, attributes: { 'bullpen.follow_up_of': group.id } },
  ])
})
