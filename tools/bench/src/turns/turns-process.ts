// Measures one side of the benchmark `turns`: node turns-process.ts REDIS_URL KEYS TASKS. Without concurrency keys, KEYS is 0. Prints a
// JSON object with the CPU time per task in µs, used by this process and by Redis.
import { randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineHandler } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { Redis } from 'ioredis'
import { createCountdown, printTaskCosts } from '../measuring/task-costs.ts'
import { benchTask, catalogue, plainTask, turnTask } from './workload.ts'

const [redisUrl = '', ...numbers] = process.argv.slice(2)
const [keys = Number.NaN, tasks = Number.NaN] = numbers.map(Number)
if (!(keys >= 0) || !(tasks > 0)) throw new Error('expected REDIS_URL, a number of keys, and a number of tasks')

const countdown = createCountdown()
const handlers = {
  'bench.turns': defineHandler(turnTask, import.meta.url, () => countdown.end()),
  'bench.plain': defineHandler(plainTask, import.meta.url, () => {}),
}

const log = { debug() {}, info() {}, warn() {}, error: console.error }
const namespace = `bench-${randomUUID().slice(0, 8)}`
const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, leads: false, log })

await printTaskCosts({
  redis: new Redis(redisUrl),
  broker,
  tasks,
  countdown,
  enqueue: (n) => broker.enqueue(benchTask(turnTask, n, keys)),
  createWorker: (slots) =>
    createWorker({
      catalogue,
      handlers,
      config: { redisUrl, namespace, logLevel: 'warn', pools: { [turnTask.queue]: slots }, port: 0 },
    }),
})
