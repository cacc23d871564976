// Tests that the metrics of the API and of a worker show what the run of a pipeline does, on a real Redis.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import {
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineSource,
  defineSourceHandler,
  defineTask,
  TaskError,
} from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { createWorker } from '@bullpen/worker'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createClient, http } from './index.ts'

const input = z.object({ numbers: z.array(z.int()) })
const item = z.object({ n: z.int() })
const queue = 'numbers'
const gen = defineSource({ name: 'numbers.gen', queue, input, item })
const even = defineTask({
  name: 'numbers.even',
  queue,
  input: item,
  output: item.optional(),
  retry: { maxAttempts: 1 },
})
const evens = definePipeline('evens', { onError: 'collect' }).source(gen).map(even, { concurrency: 4 }).map(even)
const silent = { debug() {}, info() {}, warn() {}, error() {} }

test('the metrics count the unfinished runs, the items by stage and outcome, and the ends of runs with their duration', async () => {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redisUrl = inject('redisUrl')
  const catalogue = defineCatalogue(gen, even, evens)
  const key = randomUUID()
  const api = await createApi({
    catalogue,
    log: silent,
    config: { redisUrl, namespace, keys: [key], port: 0, metricsPort: 0 },
  })
  onTestFinished(() => api.close())
  const { url, metricsUrl } = await api.listen()
  const client = createClient({ transport: http(url, key) })
  onTestFinished(() => client.close())
  const released = Promise.withResolvers<void>()
  const handlers = {
    'numbers.gen': defineSourceHandler(gen, import.meta.url, function* ({ numbers }) {
      for (const n of numbers) yield { n }
    }),
    'numbers.even': defineHandler(even, import.meta.url, async ({ input: { n } }) => {
      if (n < 0) throw new TaskError('negative', 'the number is negative', { retryable: false })
      if (n === 0) await released.promise
      return n % 2 === 0 ? { n } : undefined
    }),
  }
  const config = { redisUrl, namespace, port: 0, logLevel: 'silent' } as const
  const worker = createWorker({ catalogue, handlers, config })
  onTestFinished(async () => void (await worker.drain()))
  const { url: workerUrl } = await worker.start()
  const read = async (from: string) => (await (await fetch(from)).text()).split('\n')
  /** Returns the sum over both processes, because either may report the end of a task: the worker, or the leader if it is faster. */
  const total = async (series: string): Promise<number> => {
    const lines = (await Promise.all([metricsUrl, `${workerUrl}/metrics`].map(read))).flat()
    const values = lines
      .filter((line) => line.startsWith(`${series} `))
      .map((line) => Number(line.slice(series.length)))
    return values.reduce((sum, value) => sum + value, 0)
  }

  const run = await client.startPipeline(evens, { numbers: [-1, 0, 1, 2, 3, 4] })
  await eventually(async () => (await run.describe()).stages[1]?.completed === 2)
  expect(await total('bullpen_unfinished_runs')).toBe(1)
  released.resolve()
  await run.waitUntilEnded({ timeout: '2m' })
  await eventually(async () => (await read(metricsUrl)).includes('bullpen_unfinished_runs 0'))

  const empty = await client.startPipeline(evens, { numbers: [] })
  await empty.waitUntilEnded({ timeout: '2m' })
  // A process counts the end just after it has announced it.
  await eventually(async () => (await total('bullpen_run_duration_seconds_count{pipeline="evens"}')) === 2)
  const counted = ['1 completed', '1 dropped', '1 failed', '2 completed'].map((place) => {
    const [stage, outcome] = place.split(' ')
    return total(`bullpen_run_items_total{pipeline="evens",stage="${stage}",outcome="${outcome}"}`)
  })
  expect(await Promise.all(counted)).toEqual([3, 2, 1, 3])
  expect(await total('bullpen_runs_ended_total{pipeline="evens",result="completed"}')).toBe(2)
  expect(await total('bullpen_run_duration_seconds_sum{pipeline="evens"}')).toBeGreaterThan(0)
})
