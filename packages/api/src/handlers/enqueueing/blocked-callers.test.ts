// Tests callers that wait for room in a full queue, at two APIs on a real Redis.
import { randomUUID } from 'node:crypto'
import {
  type Accepted,
  type BulkResponse,
  defineCatalogue,
  defineQueue,
  defineTask,
  type TaskPage,
} from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createApi } from '../../create-api.ts'

const KEY = 'integration-key-0123456789'
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const MAX_TASKS = 3

const queue = defineQueue({ name: 'imports', limits: { maxTasks: MAX_TASKS }, whenFull: { block: '30s' } })
const line = defineTask({ name: 'imports.line', queue, input: z.object({ n: z.int() }) })

async function startApi(namespace: string) {
  const config = { redisUrl: inject('redisUrl'), namespace, keys: [KEY], port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue: defineCatalogue(line), log: silent, config })
  onTestFinished(() => api.close())
  const { url, metricsUrl } = await api.listen()
  const post = (path: string, body: object = {}, more = {}) =>
    fetch(`${url}${path}`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) })
  const accepted: number[] = []
  const refused: number[] = []
  const blocked = async (): Promise<number> => {
    const text = await (await fetch(metricsUrl)).text()
    return Number(/^bullpen_blocked_requests\{queue="imports"\} (\d+)$/m.exec(text)?.[1])
  }
  return {
    api,
    accepted,
    refused,
    blocked,
    /** Enqueues a task. Its number is in `accepted` or `refused` once the API has responded. */
    async enqueue(n: number): Promise<void> {
      const response = await post('/v1/tasks', { task: line.name, input: { n } })
      await response.body?.cancel()
      if (response.status === 202) accepted.push(n)
      else refused.push(response.status)
    },
    /** Enqueues several tasks in one request. Their numbers are in `accepted` once the API has responded. */
    async enqueueBulk(numbers: readonly number[], key?: string): Promise<BulkResponse> {
      const tasks = numbers.map((n) => ({ task: line.name, input: { n } }))
      const response = await post(
        '/v1/tasks/bulk',
        { tasks },
        key === undefined ? {} : { 'idempotency-key': `"${key}"` },
      )
      const body = (await response.json()) as BulkResponse
      for (const [i, result] of body.results.entries()) if ('id' in result) accepted.push(numbers[i] ?? Number.NaN)
      return body
    },
    async waiting(): Promise<readonly string[]> {
      const response = await fetch(`${url}/v1/tasks?queue=imports&status=waiting`, { headers })
      return ((await response.json()) as TaskPage).tasks.map(({ id }) => id)
    },
    async cancelFirst(): Promise<void> {
      const [id] = await this.waiting()
      await (await post(`/v1/tasks/${id}/cancel`)).json().then((body) => body as Accepted)
    },
  }
}

test('callers of two APIs are released one for each task that leaves, and those of one API in their order', async () => {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const [one, two] = [await startApi(namespace), await startApi(namespace)]
  for (let n = 0; n < MAX_TASKS; n++) await one.enqueue(n)
  const calls: Promise<void>[] = []
  for (let n = 1; n <= 5; n++) {
    for (const api of [one, two]) {
      calls.push(api.enqueue(10 * n))
      // Each caller waits before the next one comes.
      await eventually(async () => (await api.blocked()) === n)
    }
  }
  for (let left = 1; left <= 6; left++) {
    await one.cancelFirst()
    await eventually(() => one.accepted.length + two.accepted.length === MAX_TASKS + left)
    expect(await one.waiting()).toHaveLength(MAX_TASKS)
  }
  for (const { accepted } of [one, two]) expect(accepted).toEqual(accepted.toSorted((a, b) => a - b))
  const stillWaiting = await two.blocked()
  await two.api.close()
  await eventually(() => two.refused.length === stillWaiting)
  expect(two.refused).toEqual(Array.from({ length: stillWaiting }, () => 503))
  while ((await one.blocked()) > 0) await one.cancelFirst()
  await Promise.all(calls)
  expect(one.accepted).toEqual([0, 1, 2, 10, 20, 30, 40, 50])
  expect(one.refused).toEqual([])
})

test('the callers of single and bulk requests are released in the order in which they arrived', async () => {
  const api = await startApi(`t-${randomUUID().slice(0, 8)}`)
  await api.enqueueBulk([0, 1, 2])
  const calls: Promise<unknown>[] = []
  const arrive = async (call: Promise<unknown>, waiting: number) => {
    calls.push(call)
    await eventually(async () => (await api.blocked()) === waiting)
  }
  await arrive(api.enqueue(10), 1)
  await arrive(api.enqueueBulk([20]), 2)
  await arrive(api.enqueue(30), 3)
  await arrive(api.enqueueBulk([40]), 4)
  // There is room for one task when a bulk request arrives, but others have waited for longer.
  const cancelled = api.cancelFirst()
  await arrive(api.enqueueBulk([50]), 4)
  await cancelled
  for (let left = 2; left <= 5; left++) {
    await api.cancelFirst()
    await eventually(() => api.accepted.length === MAX_TASKS + left)
  }
  await Promise.all(calls)
  expect(api.accepted).toEqual([0, 1, 2, 10, 20, 30, 40, 50])
})

test('a repeated bulk request gets its first results at once, although others are waiting for room', async () => {
  const api = await startApi(`t-${randomUUID().slice(0, 8)}`)
  const first = await api.enqueueBulk([0, 1, 2], 'import 7')
  const waiting = api.enqueue(10)
  await eventually(async () => (await api.blocked()) === 1)
  const second = await api.enqueueBulk([0, 1, 2], 'import 7')
  expect(second.results).toEqual(first.results.map((result) => ({ ...result, replayed: true })))
  await api.cancelFirst()
  await waiting
  expect(api.refused).toEqual([])
})
