// Measures one side of the benchmark `follow-ups`: node follow-up-side.ts REDIS_URL caller|handler|enqueue TASKS. Prints a JSON object
// with the CPU time in µs per first task, used by this process and by Redis.
import { randomBytes, randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, defineTask, followUp, type TaskContext } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask, planFollowUps } from '@bullpen/engine/internal'
import { createWorker } from '@bullpen/worker'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { startCpuTime } from '../cpu-time.ts'
import { untilReachable } from '../reachable.ts'
import { type FollowUpCosts, type FollowUpSide, SIDES } from './follow-ups-bench.ts'

const [redisUrl = '', sideText = '', tasksText = ''] = process.argv.slice(2)
const side = SIDES.find((each) => each === sideText)
const tasks = Number(tasksText)
if (side === undefined || !(tasks > 0)) throw new Error(`expected ${SIDES.join('|')} and a number of tasks`)

const IN_FLIGHT = 64
const SLOTS = 50

const input = z.object({ n: z.int() })
const first = defineTask({ name: 'bench.first', queue: 'bench-first', kind: 'short', input })
const next = defineTask({ name: 'bench.next', queue: 'bench-next', kind: 'short', input })
const catalogue = defineCatalogue(first, next)

let left = 0
let done = Promise.withResolvers<void>()

type First = Pick<TaskContext<typeof first>, 'input' | 'onSuccess' | 'enqueue'>
const HANDLES: Readonly<Record<FollowUpSide, (context: First) => void | Promise<void>>> = {
  caller() {},
  handler: (context) => context.onSuccess(next, context.input),
  async enqueue(context) {
    await context.enqueue(next, context.input)
  },
}
const handlers = {
  'bench.first': defineHandler(first, import.meta.url, HANDLES[side]),
  'bench.next': defineHandler(next, import.meta.url, () => {
    left--
    if (left === 0) done.resolve()
  }),
}

const log = { debug() {}, info() {}, warn() {}, error: console.error }
const namespace = `bench-${randomUUID().slice(0, 8)}`
const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, log })
const redis = new Redis(redisUrl)

function taskOf(n: number) {
  const enqueuedAt = Date.now()
  const id = createTaskId(first.queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES))
  const call = side === 'caller' ? { onSuccess: [followUp(next, { n })] } : {}
  const followUps = planFollowUps(call, { catalogue, correlationId: undefined })
  return newTask(first, { n }, {}, { id, enqueuedAt, correlationId: undefined, followUps })
}

async function enqueueAll(): Promise<void> {
  let n = 0
  const lane = async (): Promise<void> => {
    while (n < tasks) await broker.enqueue(taskOf(n++))
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

async function measure(): Promise<FollowUpCosts> {
  const enqueueing = await startCpuTime(redis)
  await enqueueAll()
  const enqueue = await enqueueing()
  left = tasks
  done = Promise.withResolvers()
  const pools = { [first.queue]: SLOTS, [next.queue]: SLOTS }
  const worker = createWorker({
    catalogue,
    handlers,
    config: { redisUrl, namespace, logLevel: 'warn', pools, port: 0 },
  })
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
