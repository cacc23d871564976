// Tests pipelines with each transport on a real Redis, with a worker: over HTTP through an API, and over Redis.
import { randomUUID } from 'node:crypto'
import {
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineReduceHandler,
  defineReducer,
  defineSource,
  defineSourceHandler,
  defineTask,
  type RunErrorView,
  TaskError,
} from '@bullpen/contract'
import { createRunId } from '@bullpen/contract/internal'
import { createWorker } from '@bullpen/worker'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createClient, RunEndedError } from './index.ts'
import { TRANSPORTS } from './transports.fixture.ts'

const input = z.object({ numbers: z.array(z.int()) })
const item = z.object({ n: z.int() })
const queue = 'numbers'
const gen = defineSource({ name: 'numbers.gen', queue, input, item })
const square = defineTask({ name: 'numbers.square', queue, input: item, output: item, retry: { maxAttempts: 1 } })
const list = defineReducer({ name: 'numbers.list', queue, input, item, output: z.array(z.int()) })
const squares = definePipeline('squares').source(gen).map(square, { concurrency: 2 }).map(square).reduce(list)
const most = definePipeline('most', { onError: 'collect' }).source(gen).map(square).reduce(list)
const catalogue = defineCatalogue(gen, square, list, squares, most)
const handlers = {
  'numbers.gen': defineSourceHandler(gen, import.meta.url, function* ({ numbers }) {
    for (const n of numbers) {
      if (n === 0) throw new TaskError('zero', 'the number is zero', { retryable: false })
      yield { n }
    }
  }),
  'numbers.square': defineHandler(square, import.meta.url, async ({ input: { n }, signal }) => {
    if (n < 0) throw new TaskError('negative', 'the number is negative', { retryable: false })
    if (n > 1_000) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    return { n: n * n }
  }),
  'numbers.list': defineReduceHandler(list, import.meta.url, (items) => {
    if (items.some(({ n }) => n === 390_625)) throw new TaskError('too_large', 'too large', { retryable: false })
    return items.map(({ n }) => n)
  }),
}

describe.each(TRANSPORTS)('a client over %s', (_, open) => {
  async function setup() {
    const namespace = `t-${randomUUID().slice(0, 12)}`
    const client = createClient({ transport: await open(catalogue, namespace) })
    onTestFinished(() => client.close())
    const config = { redisUrl: inject('redisUrl'), namespace, port: 0, logLevel: 'silent' } as const
    const worker = createWorker({ catalogue, handlers, config })
    onTestFinished(async () => void (await worker.drain()))
    await worker.start()
    return client
  }

  test('squares the squares of 2 and 3', async () => {
    const client = await setup()
    const run = await client.startPipeline(squares, { numbers: [2, 3] })
    expect(await run.output({ timeout: '2m' })).toEqual([16, 81])
    expect(await run.describe()).toMatchObject({ state: 'ended', result: 'completed', results: 2, output: [16, 81] })
  })

  test('learns the result of a run with a keep of 0s, and deletes the run once it has ended', async () => {
    const client = await setup()
    const run = await client.startPipeline(squares, { numbers: [2, 1_001] }, { keep: '0s' })
    await expect(run.delete()).rejects.toMatchObject({ code: 'run_not_ended' })
    await run.cancel()
    await expect(run.output({ timeout: '2m' })).rejects.toMatchObject({ run: { result: 'cancelled' } })
    await run.delete({ by: 'ann' })
    await expect(run.describe()).rejects.toMatchObject({ code: 'run_not_found' })
  })

  test('learns which item has failed', async () => {
    const client = await setup()
    const run = await client.startPipeline(squares, { numbers: [2, -3] })
    const error = await run.output({ timeout: '2m' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RunEndedError)
    expect(error).toMatchObject({ run: { result: 'failed', firstError: { stage: 1, position: 1, end: 'dead' } } })
    expect((error as RunEndedError).message).toMatch(
      /^run run-\w+ has failed: task \S+ is dead: negative: the number is negative$/,
    )
  })

  test('gets the output of a pipeline that collects errors, and its errors', async () => {
    const client = await setup()
    const run = await client.startPipeline(most, { numbers: [2, -3, 4] })
    expect(await run.output({ timeout: '2m' })).toEqual([4, 16])
    const errors: RunErrorView[] = []
    for await (const error of run.errors()) errors.push(error)
    expect(errors).toMatchObject([{ stage: 1, position: 1, end: 'dead', error: { code: 'negative' } }])
  })

  test('learns why the source has failed', async () => {
    const client = await setup()
    const run = await client.startPipeline(squares, { numbers: [2, 0] })
    const error = await run.output({ timeout: '2m' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RunEndedError)
    expect(error).toMatchObject({ run: { source: { state: 'failed', error: { code: 'zero' } } } })
    expect((error as RunEndedError).message).toContain('zero: the number is zero')
  })

  test('learns that the reduction has failed, and which task it was', async () => {
    const client = await setup()
    const run = await client.startPipelineNamed('squares', { numbers: [25] })
    const error = await run.output({ timeout: '2m' }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RunEndedError)
    const { reduction } = (error as RunEndedError).run
    expect(reduction).toMatchObject({ task: 'numbers.list', queue, state: 'failed' })
    expect((error as RunEndedError).message).toContain(
      `its reduction ${reduction?.taskId} has failed: too_large: too large`,
    )
    expect(await client.task(reduction?.taskId ?? '')).toMatchObject({ status: 'dead', task: 'numbers.list' })
  })

  test('starts a pipeline only once with the same id', async () => {
    const client = await setup()
    const id = createRunId(Date.now(), new Uint8Array(10))
    const both = [1, 2].map(() => client.startPipelineNamed('squares', { numbers: [2] }, { id }))
    expect((await Promise.all(both)).map((run) => run.id)).toEqual([id, id])
    const refused = { code: 'run_id_taken', message: expect.stringContaining('a different input;') }
    await expect(client.startPipelineNamed('squares', { numbers: [3] }, { id })).rejects.toMatchObject(refused)
    await expect(client.startPipelineNamed('most', { numbers: [2] }, { id })).rejects.toMatchObject({
      message: expect.stringContaining('a different pipeline (squares);'),
    })
    expect(await client.run(id).output({ timeout: '2m' })).toEqual([16])
  })

  test('cancels a run from outside', async () => {
    const client = await setup()
    const { id } = await client.startPipeline(squares, { numbers: [2_000, 1] }, { by: 'ann' })
    const run = client.run(id)
    await expect.poll(async () => (await run.describe()).stages[0]?.running).toBeGreaterThan(0)
    expect(await run.cancel({ by: 'bob' })).toMatchObject({ stopReason: 'cancelled' })
    expect(await run.waitUntilEnded({ timeout: '2m' })).toMatchObject({ result: 'cancelled' })
  })

  test('is refused if the input or the run is wrong', async () => {
    const client = await setup()
    await expect(client.startPipeline(squares, { numbers: ['x'] as never })).rejects.toMatchObject({
      code: 'invalid_input',
    })
    await expect(client.run('run-01jd3v7n8q0000000000000000').describe()).rejects.toMatchObject({
      code: 'run_not_found',
    })
  })
})
