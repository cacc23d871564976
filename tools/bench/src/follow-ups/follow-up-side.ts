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
import { createCountdown, printTaskCosts } from '../measuring/task-costs.ts'
import { type FollowUpSide, SIDES } from './follow-ups-bench.ts'

const [redisUrl = '', sideText = '', tasksText = ''] = process.argv.slice(2)
const side = SIDES.find((each) => each === sideText)
const tasks = Number(tasksText)
if (side === undefined || !(tasks > 0)) throw new Error(`expected ${SIDES.join('|')} and a number of tasks`)

const input = z.object({ n: z.int() })
const first = defineTask({ name: 'bench.first', queue: 'bench-first', kind: 'short', input })
const next = defineTask({ name: 'bench.next', queue: 'bench-next', kind: 'short', input })
const catalogue = defineCatalogue(first, next)

const countdown = createCountdown()

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
  'bench.next': defineHandler(next, import.meta.url, () => countdown.end()),
}

const log = { debug() {}, info() {}, warn() {}, error: console.error }
const namespace = `bench-${randomUUID().slice(0, 8)}`
const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, log })

function taskOf(n: number) {
  const enqueuedAt = Date.now()
  const id = createTaskId(first.queue, enqueuedAt, randomBytes(ID_RANDOM_BYTES))
  const call = side === 'caller' ? { onSuccess: [followUp(next, { n })] } : {}
  const followUps = planFollowUps(call, { catalogue, correlationId: undefined })
  return newTask(first, { n }, {}, { id, enqueuedAt, correlationId: undefined, followUps })
}

await printTaskCosts({
  redis: new Redis(redisUrl),
  broker,
  tasks,
  countdown,
  enqueue: (n) => broker.enqueue(taskOf(n)),
  createWorker: (slots) =>
    createWorker({
      catalogue,
      handlers,
      config: { redisUrl, namespace, logLevel: 'warn', pools: { [first.queue]: slots, [next.queue]: slots }, port: 0 },
    }),
})
