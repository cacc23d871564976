// Tests what a retry budget costs, and what becomes of retries that it holds, with real workers.

import { randomBytes } from 'node:crypto'
import { defineCatalogue, defineHandler, defineTask, TaskError, type TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { createRegistry, DEFAULT_TIMEOUTS, newTask } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { testPool } from '@bullpen/testkit/internal'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { newNamespace, openBullmqOn } from '../conformance/backend.fixture.ts'
import { queueKeys } from '../keys.ts'

const QUEUE = 'budget'
const budget = { ratio: 0, minRetriesPerSecond: 0.1 }
const common = { queue: QUEUE, input: z.object({ fails: z.boolean() }) } as const
const retryAfter = (initialDelay: '10ms' | '1h') =>
  ({ maxAttempts: 3, backoff: { type: 'fixed', initialDelay, jitter: 0 }, budget }) as const
// The second attempt would be counted as well, so it must not start before the test has read the counts.
const call = defineTask({ name: 'budget.call', retry: retryAfter('1h'), ...common })
const limits = { totalTimeout: '1500ms', timeout: '1s', retry: retryAfter('10ms') } as const
const limited = defineTask({ name: 'budget.limited', ...limits, ...common })

async function open() {
  const redisUrl = inject('redisUrl')
  const namespace = newNamespace()
  const options = {
    queues: [QUEUE],
    sizeLimit: 10_000,
    onExpired: () => {},
    locks: 'usual',
    clock: systemClock,
  } as const
  const backend = await openBullmqOn(redisUrl, namespace, options)
  const handle = ({ input }: { readonly input: { readonly fails: boolean } }): void => {
    if (input.fails) throw new TaskError('busy', 'try again')
  }
  const handlers = {
    'budget.call': defineHandler(call, import.meta.url, handle),
    'budget.limited': defineHandler(limited, import.meta.url, handle),
  }
  const registry = createRegistry(defineCatalogue(call, limited), handlers, { timeouts: DEFAULT_TIMEOUTS })
  const settings = { clock: systemClock, queue: QUEUE, concurrency: 10, worker: 'test:1' }
  const consumer = backend.consumer({ concurrency: 10, worker: 'test:1' })
  const pool = testPool(backend.broker, registry, consumer, settings)
  const redis = new Redis(redisUrl)
  onTestFinished(async () => {
    await pool.drain({ drainMs: 0, graceMs: 100 })
    await backend.close()
    redis.disconnect()
  })
  await pool.start()
  return {
    redis,
    keys: queueKeys(namespace, QUEUE),
    find: backend.broker.find,
    settled: (id: TaskId) => backend.broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
    async enqueue(definition: typeof call | typeof limited, fails: boolean): Promise<TaskId> {
      const now = Date.now()
      const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
      const origin = { id, enqueuedAt: now, correlationId: undefined }
      await backend.broker.enqueue(newTask(definition, { fails }, {}, origin))
      return id
    },
  }
}

it('a task that succeeds in its first attempt stores nothing for the budget, and the next failure reports it', async () => {
  const { redis, keys, enqueue, settled } = await open()
  for (const id of await Promise.all(Array.from({ length: 5 }, () => enqueue(call, false)))) await settled(id)
  expect(await redis.exists(keys.retryBudget(call.name))).toBe(0)
  await enqueue(call, true)
  const {
    tokens,
    at: _,
    ...counts
  } = await eventually(async () => {
    const stored = await redis.hgetall(keys.retryBudget(call.name))
    return Object.keys(stored).length > 0 && stored
  })
  expect(Object.values(counts).reduce((sum, count) => sum + Number(count), 0)).toBe(6)
  expect(Number(tokens)).toBe(0)
})

it('a held retry whose total timeout expires is dead by then, although its slot begins later', async () => {
  const { enqueue, settled } = await open()
  const ids = await Promise.all([enqueue(limited, true), enqueue(limited, true), enqueue(limited, true)])
  for (const id of ids) {
    const record = await settled(id)
    expect(record).toMatchObject({ status: 'dead' })
    const [last] = record?.attempts.slice(-1) ?? []
    expect(last).toMatchObject({ reason: 'total_timeout' })
  }
})
