// A task that a consumer ends because of a cancel rule is counted in the rule's progress by the commit itself.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import type { AttemptResult } from '@bullpen/engine/internal'
import { Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { workersEvents } from '../events/workers-events.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { lockTask } from '../locks/stored-lock.fixture.ts'
import { commit } from '../processor.ts'
import { createAttemptCounts } from '../retry-budget/attempt-counts.ts'
import { bullpenBackend } from '../store/bullpen-backend.ts'

const attempts = createAttemptCounts(() => performance.now())

/** The result of an attempt that did not start because a cancel rule matches the task. */
function cancelled(job: Job): AttemptResult {
  const attempt = { fencingToken: 0, attempt: 1, state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' } as const
  const fields = { queue: 'q', task: job.name, id: job.id as TaskId, kind: 'long', correlationId: undefined } as const
  const end = { code: undefined, error: undefined, durationMs: 0, verdict: 'cancelled', delayMs: undefined } as const
  return {
    event: { ...fields, ...attempt, ...end, fencingToken: 1, event: 'attempt.ended' },
    verdict: { kind: 'cancelled' },
    record: { ...attempt, counted: true, worker: 'test', startedAt: 1, endedAt: 1 },
    error: new Error('cancelled'),
  }
}

/** A task that a worker has fetched, and that the rule `rule` matches. */
async function fetched() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const keys = queueKeys(namespace, 'q')
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const options = { connection: redis, prefix: prefixOf(namespace, 'q'), skipVersionCheck: true }
  let result: AttemptResult | undefined
  const settled: string[] = []
  const processor = async (job: Job, token = '') => {
    result ??= cancelled(job)
    const onSettled = (_: AttemptResult, refusal?: string): void => void settled.push(refusal ?? 'confirmed')
    return commit(
      result,
      job,
      token,
      { settled: onSettled, codec: undefined, attempts, events: workersEvents() },
      'rule',
    )
  }
  const queue = new Queue('q', options, bullpenBackend())
  const worker = new Worker('q', processor, { ...options, autorun: false, skipStalledCheck: true }, bullpenBackend())
  worker.on('error', () => {})
  onTestFinished(async () => {
    await worker.close(true)
    await queue.close()
    redis.disconnect()
  })
  const { id = '' } = await queue.add('a.b', {})
  const job = await worker.getNextJob('token', { block: false })
  if (!(job instanceof Job)) return expect.fail('the job was not fetched')
  return {
    redis,
    keys,
    id,
    settled,
    end: () => worker.processJob(job, 'token', () => false),
    counted: () => redis.hget(keys.cancelProgress('rule'), 'ended'),
  }
}

it('a task that a cancel rule ends is counted once, although its commit is sent again because its reply was lost', async () => {
  const { redis, keys, id, settled, end, counted } = await fetched()
  await end()
  await end()
  expect(settled).toEqual(['confirmed', 'confirmed'])
  expect(await redis.zrange(keys.cancelled, 0, '-1')).toEqual([id])
  expect(await counted()).toBe('1')
})

it('a task whose commit is refused is not counted', async () => {
  const { redis, keys, id, settled, end, counted } = await fetched()
  await lockTask(redis, keys, id, 'another owner')
  await end()
  expect(settled).toEqual(['lock_taken'])
  expect(await redis.exists(keys.cancelled)).toBe(0)
  expect(await counted()).toBeNull()
})
