// Measures how much of Redis's memory a waiting task with an input of 100 bytes takes, compared with a job of plain BullMQ.
import { openBroker } from '@bullpen/bullmq'
import { defineTask } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { createRandomPool, idempotencyOf } from '@bullpen/engine/node'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { untilReachable } from './reachable.ts'

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

const SETTING = 'hash-max-listpack-value'
const LISTPACK_VALUES = [64, 1_024] as const
const TASKS = 20_000
const IN_PARALLEL = 500
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

/** What enqueues tasks. */
interface Producer {
  enqueue(number: number): Promise<{ readonly id?: string | undefined }>
  close(): Promise<void>
}

/** Yields a result for each side and setting. The server's data is deleted before and after each of them. */
export async function* benchMemory(redisUrl: string): AsyncGenerator<TaskMemory> {
  const redis = new Redis(redisUrl)
  const [, before = ''] = (await redis.config('GET', SETTING)) as readonly string[]
  try {
    for (const listpackValue of LISTPACK_VALUES) {
      await redis.config('SET', SETTING, listpackValue)
      const measured = { redis, listpackValue }
      yield await measure({ ...measured, side: 'bullmq', idempotency: false }, await openQueue(redisUrl))
      for (const idempotency of [false, true]) {
        yield await measure({ ...measured, side: 'bullpen', idempotency }, await openProducer(redisUrl, idempotency))
      }
    }
  } finally {
    await redis.config('SET', SETTING, before)
    redis.disconnect()
  }
}

interface Measured extends Pick<TaskMemory, 'side' | 'idempotency' | 'listpackValue'> {
  readonly redis: Redis
}

async function measure({ redis, ...labels }: Measured, producer: Producer): Promise<TaskMemory> {
  await redis.flushall()
  // The scripts are loaded before the first reading.
  await producer.enqueue(0)
  const before = await usedBytes(redis)
  let id = ''
  for (let first = 0; first < TASKS; first += IN_PARALLEL) {
    const numbers = Array.from({ length: IN_PARALLEL }, (_, i) => first + i + 1)
    const [stored] = await Promise.all(numbers.map((number) => producer.enqueue(number)))
    id = stored?.id ?? ''
  }
  await producer.close()
  const bytesPerTask = Math.round(((await usedBytes(redis)) - before) / TASKS)
  const hashBytes = Number(await redis.memory('USAGE', `{${NAMESPACE}.${QUEUE}}:${QUEUE}:${id}`, 'SAMPLES', 0))
  await redis.flushall()
  return { ...labels, tasks: TASKS, bytesPerTask, hashBytes }
}

/** Returns the memory that Redis uses for data, not counting its connections and the buffer of its append-only file. */
async function usedBytes(redis: Redis): Promise<number> {
  const info = await redis.info('memory')
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
  return field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer')
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
  const setting = `${SETTING} ${listpackValue}`
  return `memory ${setting.padEnd(28)} ${name.padEnd(32)} ${String(bytesPerTask).padStart(5)} bytes a task, of which ${hashBytes} for its hash (${tasks} tasks)`
}
