// Runs a pipeline over three queues, with one worker in this process, for the benchmark `runs`.
import { randomBytes } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, definePipeline, defineSourceHandler } from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { planRun } from '@bullpen/engine/internal'
import { createWorker } from '@bullpen/worker'
import { untilReachable } from '../measuring/reachable.ts'
import { reportDone } from './report-done.ts'
import { addOne, batch, QUEUES, type RunLoad, SLOTS, single, source, sumOf } from './workload.ts'

const load = JSON.parse(process.argv[2] ?? '') as RunLoad
const { redisUrl, namespace, items, size, bound } = load
const options = { concurrency: bound, buffer: 0 }
const begun = definePipeline('bench.runs', { ordered: false }).source(source)
const pipeline =
  size > 1
    ? begun.batch(size).map(batch[0], options).map(batch[1], options).map(batch[2], options)
    : begun.map(single[0], options).map(single[1], options).map(single[2], options)
const catalogue = defineCatalogue(source, ...single, ...batch, pipeline)

let sum = 0
/** Adds one to each number. The last stage also adds up what it returns. */
const addOnes = (stage: number, numbers: readonly number[]): number[] => {
  const added = numbers.map(addOne)
  if (stage === QUEUES.length - 1) sum += sumOf(added)
  return added
}
const { url } = import.meta
const handlers = Object.fromEntries([
  [
    source.name,
    defineSourceHandler(source, url, function* ({ count }) {
      for (let n = 0; n < count; n++) yield n
    }),
  ],
  ...single.map((task, n) => [task.name, defineHandler(task, url, ({ input }) => addOnes(n, [input])[0] ?? 0)]),
  ...batch.map((task, n) => [task.name, defineHandler(task, url, ({ input }) => addOnes(n, input))]),
])
const pools = { [source.queue]: 1, ...Object.fromEntries(QUEUES.map((queue) => [queue, SLOTS])) }
const worker = createWorker({ catalogue, handlers, config: { redisUrl, namespace, logLevel: 'warn', port: 0, pools } })
const log = { debug() {}, info() {}, warn() {}, error: console.error }
const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 262_144, leads: false, log })
await untilReachable(broker)
await worker.start()
await reportDone(load, async () => {
  const now = Date.now()
  const random = randomBytes(ID_RANDOM_BYTES)
  const id = createRunId(now, random)
  const origin = { id, random, by: 'bench', now, correlationId: undefined }
  await broker.runs.start(planRun(pipeline, { ...origin, input: { count: items }, keep: '1s' }))
  const run = await broker.runs.waitUntilEnded(id, AbortSignal.timeout(3_600_000))
  if (run?.ended?.result !== 'completed') throw new Error(`the run has ended as ${run?.ended?.result}`)
  return sum
})
process.exit(0)
