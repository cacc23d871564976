// Tests the spans of a real worker process: one trace from the caller over all attempts, child tasks and follow-ups.
import { randomUUID } from 'node:crypto'
import { redis } from '@bullpen/bullmq'
import { spawnProgram } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { type PrintedSpan, ship, tracedCatalogue } from './traced-worker.fixture.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'

it('a trace continues from its caller through retries, child tasks and follow-ups, whose spans say how each attempt ended', async () => {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const traceContext = () => ({ traceparent: `00-${TRACE_ID}-${CALLER}-01`, tracestate: 'vendor=1' })
  const transport = redis(redisUrl, { catalogue: tracedCatalogue, namespace, traceContext })
  onTestFinished(() => transport.close())
  const program = new URL('traced-worker.fixture.ts', import.meta.url).pathname
  const worker = spawnProgram(program, ['--redis-url', redisUrl, '--namespace', namespace, '--pools', 'traced=2'])
  const options = { waitMs: 0, idempotencyKey: undefined, idempotencyLifeS: undefined, retryForMs: 0 } as const
  const { id } = (await transport.enqueue({ task: ship.name, input: { order: 7 } }, options)(undefined)) as {
    id: string
  }
  const lines = () => worker.output().split('\n')
  const spans = () =>
    lines().flatMap((line): readonly PrintedSpan[] => (line.startsWith('{') ? [JSON.parse(line)] : []))
  await eventually(() => spans().length === 5 && lines().some((line) => line.startsWith('thread ')))
  worker.child.kill('SIGTERM')
  expect(await worker.exited).toBe(0)

  const of = (task: string, attempt: number): PrintedSpan | undefined =>
    spans().find(({ attributes }) => attributes['bullpen.task'] === task && attributes['bullpen.attempt'] === attempt)
  const [first, second] = [of('order.ship', 1), of('order.ship', 2)]
  const process = { name: 'process traced', kind: 'CONSUMER', traceId: TRACE_ID }
  expect(first).toMatchObject({ ...process, parent: CALLER, failed: true })
  expect(first?.attributes).toEqual({
    'messaging.system': 'bullpen',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': 'traced',
    'messaging.message.id': id,
    'bullpen.task': 'order.ship',
    'bullpen.attempt': 1,
    'bullpen.fencing_token': 1,
    'bullpen.state': 'DONE_ERROR',
    'bullpen.verdict': 'retrying',
    'error.type': 'no_carrier',
  })
  expect(second).toMatchObject({ ...process, parent: CALLER, failed: false })
  expect(second?.attributes).toMatchObject({ 'bullpen.verdict': 'completed', 'bullpen.fencing_token': 2 })
  // A span that the handler makes is inside that of its attempt.
  const booking = spans().find(({ name }) => name === 'book the carrier')
  expect(booking).toMatchObject({ traceId: TRACE_ID, parent: second?.spanId })
  const child = of('order.label', 1)
  expect(child).toMatchObject({ ...process, parent: second?.spanId, failed: false })
  expect(lines()).toContain(`thread 00-${TRACE_ID}-${child?.spanId}-01`)
  const followUp = of('order.invoice', 1)
  expect(followUp).toMatchObject({ ...process, parent: second?.spanId, failed: true })
  expect(followUp?.attributes).toMatchObject({ 'bullpen.verdict': 'dead', 'error.type': 'unexpected_error' })
})
