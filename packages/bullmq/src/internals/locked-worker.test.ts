// A job whose fetch was answered while this process could not read it: who has it is asked before it is started.
import { randomUUID } from 'node:crypto'
import { type Job, Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../keys.ts'
import { openLockRenewer } from '../locks/lock-renewer.ts'
import { silent } from '../rig.fixture.ts'
import { LockedWorker } from './locked-worker.ts'

const lockMs = 5_000

/** A job that was taken, and how it goes on. */
async function taken() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const common = { connection: redis, prefix: prefixOf(namespace, 'kept') }
  const queue = new Queue('kept', common)
  const processed: (string | undefined)[] = []
  const processor = async ({ id }: Job): Promise<void> => void processed.push(id)
  const worker = new LockedWorker('kept', processor, {
    ...common,
    autorun: false,
    lockDuration: lockMs,
    skipLockRenewal: true,
  })
  const { base, lock } = queueKeys(namespace, 'kept')
  const keeper = openLockRenewer({
    base,
    lockMs,
    renewalMs: 1_000,
    eventLoopStallLimitMs: undefined,
    redisUrl,
    slots: 1,
    log: silent,
  })
  worker.keeping = { keeper, redis, base, lockMs, now: Date.now, lost: () => {} }
  onTestFinished(async () => {
    keeper.close()
    await worker.close()
    await queue.obliterate({ force: true })
    await queue.close()
    redis.disconnect()
  })
  await queue.add('x', {})
  const job = await worker.getNextJob('mine', { block: false })
  if (job?.id === undefined) throw new Error('it was added')
  return { job, worker, processed, redis, lock: lock(job.id) }
}

it('is not started when another one has it', async () => {
  const { job, worker, processed, redis, lock } = await taken()
  await redis.set(lock, 'theirs', 'PX', 60_000)
  job.processedOn = Date.now() - lockMs
  await worker.processJob(job, 'mine', () => false)
  expect(processed).toEqual([])
  expect(await redis.get(lock)).toBe('theirs')
})

it('is started when it is ours still', async () => {
  const { job, worker, processed } = await taken()
  job.processedOn = Date.now() - lockMs
  await worker.processJob(job, 'mine', () => false)
  expect(processed).toEqual([job.id])
  expect(await job.getState()).toBe('completed')
})
