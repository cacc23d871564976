// A job whose fetch is answered late: the process was blocked, and the lock may have expired. It is started only if this
// process still has it.
import { randomUUID } from 'node:crypto'
import { type Job, Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { openLockRenewer } from '../../locks/lock-renewer.ts'
import { lockOwner, lockTask } from '../../locks/stored-lock.fixture.ts'
import { silent } from '../../setup.fixture.ts'
import { bullpenBackend } from '../../store/bullpen-backend.ts'
import { ConsumerWorker } from './consumer-worker.ts'

const lockMs = 5_000

/** A fetched job, and the worker that is to process it. */
async function fetchJob() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const common = { connection: redis, prefix: prefixOf(namespace, 'kept') }
  const queue = new Queue('kept', common)
  const processed: (string | undefined)[] = []
  const processor = async ({ id }: Job): Promise<void> => void processed.push(id)
  const options = { ...common, autorun: false, lockDuration: lockMs, skipLockRenewal: true }
  const worker = new ConsumerWorker('kept', processor, options, bullpenBackend())
  const keys = queueKeys(namespace, 'kept')
  const { base } = keys
  const renewer = openLockRenewer({
    base,
    lockMs,
    renewalMs: 1_000,
    eventLoopStallLimitMs: undefined,
    redisUrl,
    slots: 1,
    log: silent,
  })
  worker.locks = { renewer, redis, base, lockMs, now: Date.now, onLost: () => {} }
  onTestFinished(async () => {
    renewer.close()
    await worker.close()
    await queue.obliterate({ force: true })
    await queue.close()
    redis.disconnect()
  })
  await queue.add('x', {})
  const job = await worker.getNextJob('mine', { block: false })
  if (job?.id === undefined) throw new Error('no job was fetched')
  return { job, id: job.id, worker, processed, redis, keys }
}

it('a job that another process has locked is not started', async () => {
  const { job, id, worker, processed, redis, keys } = await fetchJob()
  await lockTask(redis, keys, id, 'theirs')
  job.processedOn = Date.now() - lockMs
  await worker.processJob(job, 'mine', () => false)
  expect(processed).toEqual([])
  expect(await lockOwner(redis, keys, id)).toBe('theirs')
})

it('a job that this process still has is started', async () => {
  const { job, worker, processed } = await fetchJob()
  job.processedOn = Date.now() - lockMs
  await worker.processJob(job, 'mine', () => false)
  expect(processed).toEqual([job.id])
  expect(await job.getState()).toBe('completed')
})
