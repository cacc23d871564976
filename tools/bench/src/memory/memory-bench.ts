// Measures how much of Redis's memory a waiting task with an input of 100 bytes takes, compared with a job of plain BullMQ.
import { openBroker } from '@bullpen/bullmq'
import { defineTask } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { createRandomPool, idempotencyOf } from '@bullpen/engine/node'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { untilReachable } from '../measuring/reachable.ts'
import { measureBytes, type Producer } from './bytes-per-task.ts'
import { atListpackValues, LISTPACK_SETTING } from './listpack-values.ts'

export interface TaskMemory {
  readonly side: 'bullpen' | 'bullmq'
  readonly idempotency: boolean
  /** The server's `hash-max-listpack-value`. Redis's default is 64. */
  readonly listpackValue: number
  readonly tasks: number
  /** By how much the memory that Redis uses has grown for each task. Includes everything that is stored for the queue. */
  readonly bytesPerTask: number
  /** What MEMORY USAGE reports for the hash of one of the tasks. */
  readonly hashBytes: number
}

const TASKS = 20_000
const NAMESPACE = 'memory'
const QUEUE = 'bench'

/** Takes 100 bytes as JSON. */
const INPUT = { text: 'x'.repeat(89) }
const task = defineTask({
  name: 'bench.task',
  queue: QUEUE,
  kind: 'short',
  input: z.object({ text: z.string() }),
  output: z.void(),
})

/** Yields a result for each side and setting. The server's data is deleted before and after each of them. */
export async function* benchMemory(redisUrl: string): AsyncGenerator<TaskMemory> {
  const redis = new Redis(redisUrl)
  try {
    yield* atListpackValues(redis, async function* (listpackValue) {
      const measured = { redis, listpackValue }
      yield await measure({ ...measured, side: 'bullmq', idempotency: false }, await openQueue(redisUrl))
      for (const idempotency of [false, true]) {
        yield await measure({ ...measured, side: 'bullpen', idempotency }, await openProducer(redisUrl, idempotency))
      }
    })
  } finally {
    redis.disconnect()
  }
}

interface Measured extends Pick<TaskMemory, 'side' | 'idempotency' | 'listpackValue'> {
  readonly redis: Redis
}

async function measure({ redis, ...labels }: Measured, producer: Producer): Promise<TaskMemory> {
  const { bytesPerTask, id } = await measureBytes(redis, TASKS, producer)
  const hashBytes = Number(await redis.memory('USAGE', `{${NAMESPACE}.${QUEUE}}:${QUEUE}:${id}`, 'SAMPLES', 0))
  await redis.flushall()
  return { ...labels, tasks: TASKS, bytesPerTask, hashBytes }
}

async function openProducer(redisUrl: string, idempotency: boolean): Promise<Producer> {
  const log = { debug() {}, info() {}, warn() {}, error: console.error }
  const broker = openBroker({ redisUrl, namespace: NAMESPACE, queues: [QUEUE], sizeLimit: 65_536, log, leads: false })
  await untilReachable(broker)
  const random = createRandomPool()
  return {
    enqueue(number) {
      const enqueuedAt = Date.now()
      const id = createTaskId(QUEUE, enqueuedAt, random(ID_RANDOM_BYTES))
      const created = newTask(task, INPUT, {}, { id, enqueuedAt, caller: 'only', correlationId: undefined })
      if (!idempotency) return broker.enqueue(created)
      const record = idempotencyOf({ key: `order-${number}`, caller: 'bench', request: 'bench', life: 86_400 })
      return broker.enqueue({ ...created, idempotency: record })
    },
    close: () => broker.close(),
  }
}

async function openQueue(redisUrl: string): Promise<Producer> {
  const queue = new Queue(QUEUE, { connection: { url: redisUrl }, prefix: `{${NAMESPACE}.${QUEUE}}` })
  await queue.waitUntilReady()
  return { enqueue: () => queue.add(task.name, INPUT), close: () => queue.close() }
}

const NAMES = { bullpen: 'Bullpen', bullmq: 'plain BullMQ' } as const

export function describeMemory({
  side,
  idempotency,
  listpackValue,
  tasks,
  bytesPerTask,
  hashBytes,
}: TaskMemory): string {
  const name = idempotency ? `${NAMES[side]} with an idempotency key` : NAMES[side]
  const setting = `${LISTPACK_SETTING} ${listpackValue}`
  return `memory ${setting.padEnd(28)} ${name.padEnd(32)} ${String(bytesPerTask).padStart(5)} bytes a task, of which ${hashBytes} for its hash (${tasks} tasks)`
}
