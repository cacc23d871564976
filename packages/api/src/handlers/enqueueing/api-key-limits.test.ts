// Tests the limits of an API key at two APIs on a real Redis.
import { randomUUID } from 'node:crypto'
import { defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
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
const catalogue = defineCatalogue(
  defineTask({ name: 'math.square', queue: 'cpu', input: z.object({ n: z.int() }) }),
  defineTask({ name: 'limited.square', queue: limited, input: z.object({ n: z.int() }) }),
)

async function startApi(namespace: string) {
  const keys = [`shop:${OLD}`, `shop:${NEW}`, OTHER]
  const keyLimits = { shop: { enqueueRate: '20/1h' } }
  const config = { redisUrl: inject('redisUrl'), namespace, keys, keyLimits, port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue, log: silent, config })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const post = async (key: string, path: string, body: object): Promise<{ status: number; text: string }> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
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
