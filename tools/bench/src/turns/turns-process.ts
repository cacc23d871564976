// Measures one side of the benchmark `turns`: node turns-process.ts REDIS_URL WHAT KEYS TASKS. WHAT is what the keys do (TURNS
// in ./workload.ts). Without concurrency keys, KEYS is 0. Prints a JSON object with the CPU time per task in µs, used by this
// process and by Redis.
import { randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineHandler } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { Redis } from 'ioredis'
import { createCountdown, printTaskCosts } from '../measuring/task-costs.ts'
import { benchTask, catalogue, plainTask, TURNS, type Turns } from './workload.ts'

const [redisUrl = '', what = '', ...numbers] = process.argv.slice(2)
const [keys = Number.NaN, tasks = Number.NaN] = numbers.map(Number)
if (!Object.hasOwn(TURNS, what) || !(keys >= 0) || !(tasks > 0)) {
  throw new Error(
    `expected REDIS_URL, one of ${Object.keys(TURNS).join(', ')}, a number of keys, and a number of tasks`,
  )
}
const definition = TURNS[what as Turns]

const countdown = createCountdown()
const end = (): void => countdown.end()
const handlers = {
  'bench.turns': defineHandler(TURNS['take turns'], import.meta.url, end),
  'bench.limits': defineHandler(TURNS['have limits'], import.meta.url, end),
  'bench.rates': defineHandler(TURNS['have limits and rates'], import.meta.url, end),
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
  enqueue: (n) => broker.enqueue(benchTask(definition, n, keys)),
  createWorker: (slots) =>
    createWorker({
      catalogue,
      handlers,
      config: { redisUrl, namespace, logLevel: 'warn', pools: { [definition.queue]: slots }, port: 0 },
    }),
})
