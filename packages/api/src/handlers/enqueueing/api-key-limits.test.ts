// Tests the limits of an API key at two APIs on a real Redis.
import { randomUUID } from 'node:crypto'
import { defineCatalogue, definePipeline, defineQueue, defineSource, defineTask } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createApi } from '../../create-api.ts'

const OLD = 'integration-key-0123456789'
const NEW = 'integration-key-9876543210'
const OTHER = 'integration-key-other-0123'
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const TASK = { task: 'math.square', input: { n: 4 } }

const limited = defineQueue({ name: 'limited', limits: { perApiKey: { enqueueRate: '8/1h', maxUnfinishedTasks: 5 } } })
/** Two queues with rates, in the order in which tokens are taken. */
const [ample, scarce] = [
  defineQueue({ name: 'ample', limits: { perApiKey: { enqueueRate: '40/1h' } } }),
  defineQueue({ name: 'scarce', limits: { maxTasks: 100, perApiKey: { enqueueRate: '12/1h' } } }),
]
const input = z.object({ n: z.int() })
const square = defineTask({ name: 'math.square', queue: 'cpu', input })
const scarceSource = defineSource({ name: 'scarce.numbers', queue: scarce, input, item: input })
const catalogue = defineCatalogue(
  square,
  defineTask({ name: 'limited.square', queue: limited, input }),
  defineTask({ name: 'ample.square', queue: ample, input }),
  defineTask({ name: 'scarce.square', queue: scarce, input }),
  scarceSource,
  definePipeline('squares').source(scarceSource).map(square),
)
const [AMPLE, SCARCE] = [
  { task: 'ample.square', input: { n: 4 } },
  { task: 'scarce.square', input: { n: 4 } },
]

async function startApi(namespace: string) {
  const keys = [`shop:${OLD}`, `shop:${NEW}`, OTHER]
  const keyLimits = { shop: { enqueueRate: '20/1h' } }
  const config = { redisUrl: inject('redisUrl'), namespace, keys, keyLimits, port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue, log: silent, config })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const post = async (
    key: string,
    path: string,
    body: object,
    more = {},
  ): Promise<{ status: number; text: string }> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more }
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, text: await response.text() }
  }
  return { post, enqueue: async (key = OLD, body = TASK) => (await post(key, '/v1/tasks', body)).status }
}

test('two APIs admit together as many tasks as the rate says, for both keys of one name', async () => {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const apis = [await startApi(namespace), await startApi(namespace)]
  const calls = apis.flatMap(({ enqueue }) =>
    [OLD, NEW].flatMap((key) => Array.from({ length: 15 }, () => enqueue(key))),
  )
  const statuses = await Promise.all(calls)
  expect(statuses.filter((status) => status === 202)).toHaveLength(20)
  expect(statuses.filter((status) => status === 429)).toHaveLength(40)
  const [one, two] = apis
  expect(await one?.enqueue(OTHER)).toBe(202)

  const limit = (apiKeyName: string, enqueueRate: unknown) =>
    one?.post(OTHER, '/v1/commands', { action: 'limit', apiKeyName, enqueueRate })
  expect(await limit('shop', { max: 1_000, per: '1s' })).toMatchObject({ status: 200 })
  await eventually(async () => (await two?.enqueue()) === 202)
  await eventually(async () => (await one?.enqueue()) === 202)
  const unknown = await limit('shpo', 'none')
  expect(unknown?.status).toBe(400)
  expect(unknown?.text).toContain('no API key has this name; expected one of shop, ')
})

test('two APIs keep to the limits of a queue for each API key, exactly', async () => {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const [one, two] = [await startApi(namespace), await startApi(namespace)]
  const body = { task: 'limited.square', input: { n: 1 } }
  const others = (api: typeof one) => Array.from({ length: 10 }, () => api.post(OTHER, '/v1/tasks', body))
  const responses = await Promise.all([one, two].flatMap(others))
  const accepted = responses.filter(({ status }) => status === 202)
  expect(accepted).toHaveLength(5)
  for (const { status, text } of responses.filter((response) => !accepted.includes(response))) {
    expect(status).toBe(429)
    expect(text).toContain('5 of its tasks have not ended, and maxUnfinishedTasks is 5')
  }
  expect(await one.enqueue(OLD, body)).toBe(202)

  // A caller that waits gets the place of a task that is cancelled, until the API key has no tokens left.
  const blocked = { ...body, whenFull: { block: '30s' } }
  for (const [n, { text }] of accepted.slice(0, 4).entries()) {
    const waiting = two.post(OTHER, '/v1/tasks', blocked)
    const { id } = JSON.parse(text) as { id: string }
    await one.post(OTHER, `/v1/tasks/${id}/cancel`, {})
    expect(await waiting).toMatchObject(n < 3 ? { status: 202 } : { status: 429 })
  }
})

test('two APIs charge exactly the follow-ups that requests name, and refuse at once what the rate never permits', async () => {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const apis = [await startApi(namespace), await startApi(namespace)] as const
  const withFollowUps = { ...TASK, onSuccess: [{ ...TASK, onEnd: [TASK, TASK] }] }
  const send = (i: number) => apis[i % 2 === 0 ? 0 : 1].post(OLD, '/v1/tasks', withFollowUps)
  const responses = await Promise.all(Array.from({ length: 12 }, (_, i) => send(i)))
  expect(responses.filter(({ status }) => status === 202)).toHaveLength(5)
  const refused = responses.filter(({ status }) => status === 429)
  expect(refused).toHaveLength(7)
  for (const { text } of refused) expect(text).toMatch(/the request needs 4 tokens, of which [0-3] are available/)

  const many = { ...TASK, onSuccess: Array.from({ length: 10 }, () => ({ ...TASK, onEnd: [TASK] })) }
  const never = await apis[0].post(OLD, '/v1/tasks', many)
  expect(never).toMatchObject({ status: 413, text: expect.stringContaining('the request needs 21 tokens') })
})

/** Opens two APIs on one Redis, which receive requests in turn. */
async function openTwo() {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const apis = [await startApi(namespace), await startApi(namespace)] as const
  let sent = 0
  const post = (path: string, body: object, headers = {}) =>
    apis[sent++ % 2 === 0 ? 0 : 1].post(OTHER, path, body, headers)
  const send = (body: object, headers = {}) => post('/v1/tasks', body, headers)
  /** Returns how many of these requests were accepted. Every other one was refused because of a rate. */
  const accepted = async (count: number, request: () => Promise<{ status: number; text: string }>) => {
    const responses = await Promise.all(Array.from({ length: count }, request))
    const stored = responses.filter(({ status }) => status < 300)
    const refused = responses.filter(({ text }) => text.includes('enqueue_rate_exceeded'))
    expect(stored.length + refused.length).toBe(count)
    return stored.length
  }
  /** Returns how many tokens each queue has left, by taking them one by one. */
  const left = async () => [await accepted(41, () => send(AMPLE)), await accepted(13, () => send(SCARCE))]
  return { post, send, accepted, left }
}

test('two APIs charge follow-ups to the rates of their queues exactly, and give back what a second queue refuses', async () => {
  const { send, accepted, left } = await openTwo()
  const body = { ...AMPLE, onSuccess: [{ ...SCARCE, onEnd: [SCARCE, AMPLE] }] }
  expect(await accepted(30, () => send(body))).toBe(6)
  expect(await left()).toEqual([40 - 2 * 6, 0])
})

test('two APIs charge a task and its follow-ups in one queue together', async () => {
  const { send, accepted, left } = await openTwo()
  expect(await accepted(20, () => send({ ...SCARCE, onEnd: [SCARCE, SCARCE, SCARCE, SCARCE] }))).toBe(2)
  expect(await left()).toEqual([40, 12 - 2 * 5])
})

test('two APIs refuse at once what the rate of a queue never permits', async () => {
  const { send, left } = await openTwo()
  const many = await send({ ...SCARCE, onSuccess: Array.from({ length: 12 }, () => SCARCE), onEnd: [AMPLE] })
  expect(many.status).toBe(413)
  expect(many.text).toContain('needs 13 tokens, one for each task that it names, and the rate of API key')
  expect(many.text).toContain("in queue 'scarce' is 12 tasks per 1h, which permits at most 12 at once")
  expect(await left()).toEqual([40, 12])
})

test('two APIs charge members and follow-ups of groups, bulk requests and pipelines', async () => {
  const { post, accepted, left } = await openTwo()
  const group = { tasks: [AMPLE, SCARCE], onEnd: [SCARCE] }
  const bulk = { tasks: [SCARCE, { ...AMPLE, onEnd: [SCARCE] }, AMPLE] }
  const first = (await post('/v1/groups', { onEnd: [AMPLE] })).text
  const more = `/v1/groups/${JSON.parse(first).id}/tasks`
  expect(await accepted(2, () => post('/v1/groups', group))).toBe(2)
  expect(await accepted(1, () => post('/v1/tasks/bulk', bulk))).toBe(1)
  expect(
    await accepted(1, () => post('/v1/tasks/bulk', { atomic: true, tasks: [AMPLE, { ...AMPLE, onEnd: [AMPLE] }] })),
  ).toBe(1)
  expect(await accepted(3, () => post('/v1/runs', { pipeline: 'squares', input: { n: 1 } }))).toBe(3)
  expect(await accepted(9, () => post(more, { tasks: [AMPLE, SCARCE] }))).toBe(3)
  expect(await left()).toEqual([40 - (1 + 2 + 2 + 3 + 3), 0])
})

test('two APIs recognise repeated requests although a queue has no tokens left', async () => {
  const { post, send, accepted } = await openTwo()
  const more = (idempotencyKey: string) => send({ ...AMPLE, onEnd: [SCARCE] }, { 'idempotency-key': idempotencyKey })
  const group = (n: number) =>
    post('/v1/groups', { id: `group-01jd3v7n8q000000000000000${n}`, tasks: [SCARCE], onEnd: [SCARCE] })
  const run = (n: number) =>
    post('/v1/runs', { id: `run-01jd3v7n8q000000000000000${n}`, pipeline: 'squares', input: { n: 1 } })
  const all = [await more('a'), await group(0), await run(0)]
  expect(await accepted(12, () => send(SCARCE))).toBe(8)
  const repeated = [await more('a'), await group(0), await run(0)]
  expect(repeated.map(({ status }) => status)).toEqual([202, 201, 200])
  const idOf = ({ text }: { readonly text: string }) => JSON.parse(text).id
  expect(repeated.map(idOf)).toEqual(all.map(idOf))
  const others = [await more('b'), await group(1), await run(1)]
  expect(others.map(({ status }) => status)).toEqual([429, 429, 429])
  const reused = await send({ ...AMPLE, priority: 3, onEnd: [SCARCE] }, { 'idempotency-key': 'a' })
  expect(reused.status).toBe(422)
})

test('two APIs give back the tokens of requests that store nothing', async () => {
  const { post, send, left } = await openTwo()
  const followed = { ...SCARCE, onEnd: [SCARCE, AMPLE] }
  for (let n = 0; n < 3; n++) {
    const once = await send(followed, { 'idempotency-key': 'one' })
    const unique = await send({ ...followed, unique: { key: 'k' } })
    const grouped = await post('/v1/groups', {
      id: 'group-01jd3v7n8q0000000000000000',
      tasks: [SCARCE],
      onEnd: [AMPLE],
    })
    const run = await post('/v1/runs', { id: 'run-01jd3v7n8q0000000000000000', pipeline: 'squares', input: { n: 1 } })
    const reused = await send({ ...followed, priority: 3 }, { 'idempotency-key': 'one' })
    expect([once, unique, grouped].map(({ status }) => status)).toEqual([202, 202, 201])
    expect([run.status, reused.status]).toEqual([n === 0 ? 201 : 200, 422])
  }
  expect(await left()).toEqual([40 - 3, 12 - (2 + 2 + 1 + 1)])
})
