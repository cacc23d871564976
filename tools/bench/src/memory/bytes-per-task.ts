// Measures how much of Redis's memory a waiting task takes.
import type { Redis } from 'ioredis'

/** What enqueues tasks. */
export interface Producer {
  /** Enqueues the task with this number. */
  enqueue(number: number): Promise<{ readonly id?: string | undefined }>
  close(): Promise<void>
}

export interface StoredBytes {
  /** By how much the memory that Redis uses has grown for each task. Includes everything that is stored for the queue. */
  readonly bytesPerTask: number
  /** The id of the last task. */
  readonly id: string
}

const IN_PARALLEL = 500

/**
 * Deletes all data of the server, and enqueues the tasks with the numbers from 0 to `tasks`. The first of them is not measured. Closes the
 * producer.
 */
export async function measureBytes(redis: Redis, tasks: number, producer: Producer): Promise<StoredBytes> {
  await redis.flushall()
  // The scripts are loaded before the first reading.
  await producer.enqueue(0)
  const before = await usedBytes(redis)
  let id = ''
  for (let first = 1; first <= tasks; first += IN_PARALLEL) {
    const numbers = Array.from({ length: Math.min(IN_PARALLEL, tasks + 1 - first) }, (_, i) => first + i)
    const stored = await Promise.all(numbers.map((number) => producer.enqueue(number)))
    id = stored.at(-1)?.id ?? ''
  }
  await producer.close()
  return { bytesPerTask: Math.round(((await usedBytes(redis)) - before) / tasks), id }
}

/** Returns the memory that Redis uses for data, not counting its connections and the buffer of its append-only file. */
async function usedBytes(redis: Redis): Promise<number> {
  const info = await redis.info('memory')
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
  return field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer')
}
