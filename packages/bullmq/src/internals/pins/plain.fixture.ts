// Plain BullMQ on the shared Redis: a Queue and Workers without anything of Bullpen, for the pins of BullMQ's own behaviour.
import { randomUUID } from 'node:crypto'
import { eventually } from '@bullpen/testkit'
import { type Job, Queue, type RedisQueueBackend, Worker, type WorkerOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { pairsOf } from '../../scripts/pairs.ts'

export const QUEUE = 'plain'

export type Processor = (job: Job, token?: string) => Promise<unknown>

export async function plainBullmq() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const options = { connection: redis, prefix: prefixOf(namespace, QUEUE) }
  const queue = new Queue(QUEUE, options)
  const workers: Worker[] = []
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.close()))
    await queue.obliterate({ force: true })
    await queue.close()
    redis.disconnect()
  })
  await queue.waitUntilReady()
  const keys = queueKeys(namespace, QUEUE)

  /** The Worker fetches nothing until `run` or `getNextJob` is called. */
  function createWorker(processor: Processor, more: Partial<WorkerOptions> = {}): Worker {
    const worker = new Worker(QUEUE, processor, { ...options, autorun: false, ...more })
    worker.on('error', () => {})
    workers.push(worker)
    return worker
  }

  return {
    queue,
    redis,
    options,
    keys,
    fields: (job: Job) => redis.hgetall(keys.job(job.id ?? '')),
    createWorker,
    startWorker(processor: Processor, more: Partial<WorkerOptions> = {}): Worker {
      const worker = createWorker(processor, more)
      void worker.run()
      return worker
    },
    async fetch(worker: Worker, token = 'token'): Promise<Job> {
      const job = await worker.getNextJob(token, { block: false })
      if (job === undefined) throw new Error('no job was fetched')
      return job
    },
    hasEnded: (job: Job, state: 'completed' | 'failed') =>
      eventually(async () => (await redis.zscore(keys[state], job.id ?? '')) !== null),
    /** The newest entries of the event stream, oldest first, as objects. */
    async events(): Promise<Record<string, string>[]> {
      const entries = await redis.xrange(keys.events, '-', '+')
      return entries.map(([, fields]) => Object.fromEntries(pairsOf(fields)))
    },
  }
}

/** The backend of a Queue or Worker. BullMQ's types allow for other backends. */
export function backendOf(owner: { getBackend(): unknown }): RedisQueueBackend {
  return owner.getBackend() as RedisQueueBackend
}
