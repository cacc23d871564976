// Tests that a queue whose only workers are a team's own has the limits of the catalogue.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineCatalogue, defineHandler, defineQueue, defineTask } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { processor } from '../plain-processor.ts'
import { silent } from '../setup.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'

const TASKS = 6

const data = defineQueue({
  name: 'data',
  limits: { permits: { db: 2 }, perConcurrencyKey: { concurrency: 1 } },
  breakers: { smtp: {} },
})
const load = defineTask({
  ...{ name: 'data.load', queue: data, timeout: '30s', input: z.object({}), output: z.object({}) },
  permits: { db: 1 },
})
const catalogue = defineCatalogue(load)

/** A queue with tasks whose definition needs a permit, and Workers whose tasks run until `end()`. */
async function limited() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redisUrl = inject('redisUrl')
  const keys = queueKeys(namespace, 'data')
  const broker = openPatientBroker({ redisUrl, namespace, queues: ['data'], sizeLimit: 10_000, log: silent })
  const redis = new Redis(redisUrl)
  onTestFinished(async () => {
    await broker.close()
    redis.disconnect()
  })
  for (let n = 0; n < TASKS; n++) {
    const origin = { id: createTaskId('data', Date.now(), randomBytes(10)), enqueuedAt: Date.now(), correlationId: 'c' }
    // The broker connects when it is first used.
    await eventually(() => broker.enqueue(newTask(load, {}, {}, origin)).then(() => true))
  }
  const ended = Promise.withResolvers<void>()
  let running = 0
  let most = 0
  const handle = defineHandler(load, import.meta.url, async () => {
    running++
    most = Math.max(most, running)
    await ended.promise
    running--
    return {}
  })
  const startWorker = (backend = bullpenBackend({ catalogue })) => {
    const options = { connection: { url: redisUrl }, prefix: prefixOf(namespace, 'data'), concurrency: 4 }
    const worker = new Worker('data', processor(catalogue, { 'data.load': handle }), options, backend)
    const errors: Error[] = []
    worker.on('error', (error) => errors.push(error))
    onTestFinished(() => worker.close(true))
    return { worker, errors }
  }
  return { redis, keys, startWorker, end: () => ended.resolve(), running: () => running, most: () => most }
}

it('the first task starts when the limits of the catalogue are stored, and no more start than these allow', async () => {
  const { redis, keys, startWorker, end, running, most } = await limited()
  startWorker()
  startWorker()
  await eventually(() => running() === 2)
  expect(await redis.hgetall(keys.capacities)).toEqual({ 'permits:db': '2' })
  expect(await redis.hgetall(keys.keyLimits)).toEqual({ concurrency: '1' })
  expect(await redis.hkeys(keys.breakers)).toEqual(['smtp'])
  end()
  await eventually(async () => (await redis.zcard(keys.completed)) === TASKS)
  expect(most()).toBe(2)
})

it('a Worker whose backend lacks the catalogue runs nothing, and says what to do', async () => {
  const { redis, keys, startWorker, end, running, most } = await limited()
  const { worker, errors } = startWorker(bullpenBackend())
  await eventually(() => worker.isPaused() && !worker.isRunning())
  expect(errors).toEqual([
    expect.objectContaining({
      code: 'invalid_configuration',
      message: expect.stringMatching(/'data'.* without the catalogue,.*bullpenBackend\(\{ catalogue \}\)/),
    }),
  ])
  expect(most()).toBe(0)

  startWorker()
  await eventually(() => running() === 2)
  end()
  await eventually(async () => (await redis.zcard(keys.completed)) === TASKS)
  expect(most()).toBe(2)
  expect(errors).toHaveLength(1)
})

it('a Worker stores limits that Redis has lost', async () => {
  const { redis, keys, startWorker, end } = await limited()
  end()
  const now = performance.now()
  startWorker()
  await eventually(async () => (await redis.zcard(keys.completed)) === TASKS)
  await redis.del(keys.settings, keys.capacities)
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 120_000)
  onTestFinished(() => clock.mockRestore())
  await redis.zadd(keys.marker, 0, '0')
  await eventually(async () => (await redis.hget(keys.capacities, 'permits:db')) === '2')
})
