// Measures one side of the benchmark `turns`: node turns-process.ts REDIS_URL KEYS TASKS. Without concurrency keys, KEYS is 0. Prints a
// JSON object with the CPU time per task in µs, used by this process and by Redis.
import { randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineHandler } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { Redis } from 'ioredis'
import { startCpuTime } from '../cpu-time.ts'
import { untilReachable } from '../reachable.ts'
import type { TurnCosts } from './turns-bench.ts'
import { benchTask, catalogue, plainTask, turnTask } from './workload.ts'

const [redisUrl = '', ...numbers] = process.argv.slice(2)
const [keys = Number.NaN, tasks = Number.NaN] = numbers.map(Number)
if (!(keys >= 0) || !(tasks > 0)) throw new Error('expected REDIS_URL, a number of keys, and a number of tasks')

const IN_FLIGHT = 64
const SLOTS = 50

let left = 0
let done = Promise.withResolvers<void>()
const handlers = {
  'bench.turns': defineHandler(turnTask, import.meta.url, () => {
    left--
    if (left === 0) done.resolve()
  }),
  'bench.plain': defineHandler(plainTask, import.meta.url, () => {}),
}

const log = { debug() {}, info() {}, warn() {}, error: console.error }
const namespace = `bench-${randomUUID().slice(0, 8)}`
const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, leads: false, log })
const redis = new Redis(redisUrl)

async function enqueueAll(): Promise<void> {
  let n = 0
  const enqueueNext = async (): Promise<void> => {
    while (n < tasks) await broker.enqueue(benchTask(turnTask, n++, keys))
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, enqueueNext))
}

async function measure(): Promise<TurnCosts> {
  const enqueueing = await startCpuTime(redis)
  await enqueueAll()
  const enqueue = await enqueueing()
  left = tasks
  done = Promise.withResolvers()
  const config = { redisUrl, namespace, logLevel: 'warn', pools: { [turnTask.queue]: SLOTS }, port: 0 } as const
  const worker = createWorker({ catalogue, handlers, config })
  await worker.start()
  const running = await startCpuTime(redis)
  await done.promise
  const run = await running()
  await worker.drain()
  return {
    'process, enqueue': enqueue.process / tasks,
    'process, run': run.process / tasks,
    process: (enqueue.process + run.process) / tasks,
    'redis, enqueue': enqueue.redis / tasks,
    'redis, run': run.redis / tasks,
    redis: (enqueue.redis + run.redis) / tasks,
  }
}

await untilReachable(broker)
await measure() // Warms up, in the same process and with the same number of tasks.
console.log(JSON.stringify(await measure()))
await Promise.all(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
process.exit(0)
