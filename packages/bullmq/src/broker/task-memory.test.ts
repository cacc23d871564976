// Tests how much of Redis's memory a waiting task takes.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { setup, short } from '../setup.fixture.ts'

const TASKS = 5_000
const AT_ONCE = 500
/** Takes 100 bytes as JSON. */
const INPUT = { text: 'x'.repeat(89) }

/** Creates a task of a call without an idempotency key, as the API creates it. */
function aTask(): NewTask {
  const now = Date.now()
  const origin = { id: createTaskId('rig', now, randomBytes(10)), enqueuedAt: now, correlationId: undefined }
  return { ...newTask(short, INPUT, {}, origin), caller: 'only' }
}

it('a waiting task with 100 bytes of input takes at most 600 bytes with hash-max-listpack-value 1024', async () => {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  await redis.config('SET', 'hash-max-listpack-value', '1024')
  const usedBytes = async (): Promise<number> => {
    const info = await redis.info('memory')
    const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
    // Connections and the buffer of the append-only file are not data.
    return field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer')
  }

  const { broker } = await setup({ redisUrl: server.url, leads: false })
  const store = async (): Promise<void> => {
    for (let stored = 0; stored < TASKS; stored += AT_ONCE) {
      const results = await broker.enqueueBulk(Array.from({ length: AT_ONCE }, aTask))
      expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
    }
  }
  // Loads the scripts, and fills the queue's stream of events, which BullMQ trims to 10,000 entries, two for each task.
  await store()
  const before = await usedBytes()
  await store()
  const bytesPerTask = ((await usedBytes()) - before) / TASKS
  expect(bytesPerTask).toBeGreaterThan(100)
  expect(bytesPerTask).toBeLessThanOrEqual(600)
})
