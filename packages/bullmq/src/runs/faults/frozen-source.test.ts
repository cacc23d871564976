// Tests that a source whose process was frozen for longer than its lock emits nothing any more once another process runs the source.
import { randomBytes, randomUUID } from 'node:crypto'
import {
  at,
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineReduceHandler,
  defineReducer,
  defineSource,
  defineSourceHandler,
  defineTask,
  type SourceFunction,
} from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { planRun } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../../broker/patient-broker.fixture.ts'
import { silent } from '../../setup.fixture.ts'
import { keepHurrying } from '../hurried-leader.fixture.ts'
import { repeated } from '../repeated.fixture.ts'
import { openWorkerProcess } from '../worker-process.fixture.ts'

const input = z.object({})
const item = z.int()
const numbers = defineSource({ name: 'frozen.numbers', queue: 'work', input, item, retry: { maxAttempts: 5 } })
const same = defineTask({ name: 'frozen.same', queue: 'work', input: item, output: item })
const gather = defineReducer({ name: 'frozen.gather', queue: 'work', input, item, output: z.array(item) })
const pipeline = definePipeline('frozen').source(numbers).map(same, { concurrency: 10 }).reduce(gather)
const catalogue = defineCatalogue(numbers, same, gather)

it('a frozen source that goes on after another process has taken over emits nothing', async () => {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['work'],
    sizeLimit: 10_000,
    log: silent,
    leads: false,
  })
  onTestFinished(async () => {
    await broker.close()
    await redis.unlink(await redis.keys(`{${namespace}*`))
    redis.disconnect()
  })
  const open = async (name: string, source: SourceFunction<typeof numbers>) => {
    const handlers = {
      [numbers.name]: defineSourceHandler(numbers, import.meta.url, source),
      [same.name]: defineHandler(same, import.meta.url, ({ input: n }) => n),
      [gather.name]: defineReduceHandler(gather, import.meta.url, (items) => [...items]),
    }
    const process = await openWorkerProcess({ name, redisUrl, namespace, redis, catalogue, handlers, slots: 4 })
    onTestFinished(() => process.close())
    return process
  }
  const emitted = async (): Promise<number> => (await broker.runs.find(id))?.source.emitted ?? 0
  const goesOn = Promise.withResolvers<void>()
  const hasYielded = Promise.withResolvers<void>()
  const isThawed = Promise.withResolvers<void>()

  const id = createRunId(Date.now(), randomBytes(ID_RANDOM_BYTES))
  const first = await open('first', async function* (_input, _context, cursor) {
    yield* [0, 1].filter((n) => n > Number(cursor ?? -1)).map((n) => at(n, n))
    await goesOn.promise
    yield* [98, 99].map((n) => at(n, n))
    hasYielded.resolve()
  })
  await eventually(() => broker.ping().then(() => true))
  const random = randomBytes(ID_RANDOM_BYTES)
  const plan = planRun(pipeline, { id, by: 'ann', input: {}, random, now: Date.now(), correlationId: undefined })
  await repeated(() => broker.runs.start(plan))
  await eventually(async () => (await broker.runs.find(id))?.results === 2)
  onTestFinished(keepHurrying({ redis, namespace, queues: ['work'], ids: [id] }))
  // Otherwise, the source would wait for the reply to its first items, and yield no others.
  await first.replied()
  await first.freeze()
  // What the source emits from now on reaches Redis only after the thaw.
  goesOn.resolve()
  await hasYielded.promise
  await open('second', async function* (_input, _context, cursor) {
    for (let n = Number(cursor) + 1; n < 5; n++) {
      if (n === 3) await isThawed.promise
      yield at(n, n)
    }
  })
  await eventually(async () => (await emitted()) === 3)
  first.thaw()
  await redis.ping()
  isThawed.resolve()
  const run = await repeated(() => broker.runs.waitUntilEnded(id, AbortSignal.timeout(120_000)))
  expect(run).toMatchObject({ source: { emitted: 5 }, ended: { result: 'completed' } })
  expect(await repeated(() => broker.runs.output(id))).toEqual([0, 1, 2, 3, 4])
})
