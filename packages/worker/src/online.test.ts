// Tests a worker that runs a given set of tasks: the worker ends when they have ended, and reports those that have not.
import { randomBytes, randomUUID } from 'node:crypto'
import { defineCatalogue, defineHandler, defineTask, type TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createWorker } from './create-worker.ts'
import { openPatientBroker } from './patient-connections.fixture.ts'
import { runUntilSignalled } from './run-until-signalled.ts'

const page = defineTask({
  name: 'batch.page',
  queue: 'batch',
  timeout: '1m',
  retry: { maxAttempts: 1 },
  input: z.object({ n: z.int() }),
  output: z.object({ n: z.int() }),
})
const catalogue = defineCatalogue(page)

async function batch(handle: (n: number, signal: AbortSignal) => Promise<void>, parent?: AbortSignal) {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openPatientBroker({ redisUrl, namespace, queues: catalogue.queues })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))
  const worker = createWorker({
    catalogue,
    handlers: {
      'batch.page': defineHandler(page, import.meta.url, async ({ input, signal }) => {
        await handle(input.n, signal)
        return input
      }),
    },
    ...(parent && { parent }),
    config: { redisUrl, namespace, pools: { batch: 2 }, port: 0, logLevel: 'silent' },
  })
  const enqueue = async (n: number): Promise<TaskId> => {
    const id = createTaskId('batch', Date.now(), randomBytes(10))
    await broker.enqueue(newTask(page, { n }, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }))
    return id
  }
  return { broker, worker, ids: await Promise.all(Array.from({ length: 10 }, (_, n) => enqueue(n))) }
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('a worker with a given set of tasks', () => {
  it('exits with 0 when all of them have ended, whether they succeeded or not', async () => {
    const { broker, worker, ids } = await batch(async (n) => {
      if (n === 3) throw new Error('torn')
    })
    expect(await runUntilSignalled(worker, { only: ids })).toBe(0)
    const statuses = await Promise.all(ids.map(async (id) => (await broker.find(id))?.status))
    expect(statuses.filter((status) => status === 'completed')).toHaveLength(9)
    expect(statuses[3]).toBe('dead')
  })

  it('exits with 1 when its parent closes, and requeues what was running', async () => {
    const parent = new AbortController()
    let done = 0
    const { broker, worker, ids } = await batch(async (n, signal) => {
      if (n >= 4) await aborted(signal)
      done++
    }, parent.signal)
    const code = runUntilSignalled(worker, { only: ids })
    await eventually(() => done === 4)
    parent.abort()
    expect(await code).toBe(1)
    const statuses = await Promise.all(ids.map(async (id) => (await broker.find(id))?.status))
    expect(statuses).toEqual([...Array(4).fill('completed'), ...Array(6).fill('waiting')])
  })

  it('refuses a task of a queue that it has no pool for', async () => {
    const { worker } = await batch(async () => {})
    const id = createTaskId('elsewhere', 1, new Uint8Array(10))
    await expect(worker.online([id])).rejects.toMatchObject({ code: 'queue_not_found' })
  })

  it('ends at once when the set is empty', async () => {
    const { worker } = await batch(async () => {})
    expect(await worker.online([])).toMatchObject({ left: [], abandoned: [] })
  })
})
