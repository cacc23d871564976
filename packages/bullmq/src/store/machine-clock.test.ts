// A team's own Queue, FlowProducer and Worker on a machine whose clock is ten minutes off: all of them use Redis's clock.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { FlowProducer, type Job, type JobsOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { lockLeftMs, lockOwner, lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { ownWorker, slow } from '../plain-processor.fixture.ts'
import { silent } from '../setup.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'

const OFF_MS = 600_000
const HOUR_MS = 3_600_000
/** What a busy machine may take between two readings of the clock. */
const CLOSE_MS = 60_000
/** BullMQ's scores: the time, with room for 4,096 jobs of the same millisecond. */
const SCORE = 0x1000

/** The true time, which Redis has. */
const trueNow = Date.now.bind(Date)
const isClose = (time: unknown, to: number): boolean => Math.abs(Number(time) - to) < CLOSE_MS

function stage(...given: Parameters<typeof ownWorker>) {
  const own = ownWorker(...given)
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(own.namespace, 'own')
  return {
    ...own,
    ...{ redis, keys },
    queue: own.openQueue('own', bullpenBackend()),
    fields: (id: string, ...names: string[]) => redis.hmget(keys.job(id), ...names),
    dueIn: async (id: string) => Number(await redis.zscore(keys.delayed, id)) / SCORE - trueNow(),
  }
}

describe.each([OFF_MS, -OFF_MS])('on a machine whose clock is %i ms off', (offMs) => {
  beforeEach(() => {
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + offMs)
    return () => void clock.mockRestore()
  })

  const expectDueIn = (actual: number, ms: number): void => {
    expect(actual).toBeGreaterThan(ms - CLOSE_MS)
    expect(actual).toBeLessThanOrEqual(ms + CLOSE_MS)
  }

  it('a delayed job is due by Redis’s clock, alone, among others and in a flow', async () => {
    const { queue, namespace, redis, fields, dueIn } = stage(({ input }) => input)
    const flows = new FlowProducer({ connection: redis, prefix: prefixOf(namespace, 'own') }, bullpenBackend())
    onTestFinished(() => flows.close())
    const opts: JobsOptions = { delay: HOUR_MS }
    const alone = await queue.add('own.slow', {}, opts)
    const [among] = await queue.addBulk([{ name: 'own.slow', data: {}, opts }])
    const { job } = await flows.add({ name: 'own.slow', queueName: 'own', data: {}, opts })
    for (const { id = '' } of [alone, among ?? expect.fail(), job]) {
      expectDueIn(await dueIn(id), HOUR_MS)
      const [timestamp] = await fields(id, 'timestamp')
      expect(isClose(timestamp, trueNow())).toBe(true)
    }
  })

  it('a job whose time of creation is an option keeps it', async () => {
    const { queue, fields, dueIn } = stage(({ input }) => input)
    const timestamp = trueNow() - HOUR_MS
    const { id = '' } = await queue.add('own.slow', {}, { timestamp, delay: 2 * HOUR_MS })
    expect(await fields(id, 'timestamp')).toEqual([`${timestamp}`])
    expectDueIn(await dueIn(id), HOUR_MS)
  })

  it('an idle Worker starts a delayed job when it is due', async () => {
    const startedAt: number[] = []
    const { queue, startWorker } = stage(({ input }) => {
      startedAt.push(trueNow())
      return input
    })
    const { settled } = startWorker()
    await queue.add('own.slow', {})
    await settled()
    const before = trueNow()
    await queue.add('own.slow', {}, { delay: 700 })
    await settled()
    const [, at = 0] = startedAt
    expect(at).toBeGreaterThanOrEqual(before + 700)
    expect(at).toBeLessThan(before + CLOSE_MS)
  })

  it('a job is stamped by Redis’s clock, and shows its Worker when it started and ended by the machine’s', async () => {
    const seen: Job[] = []
    const { queue, startWorker, run, ended, fields } = stage(({ input }) => input)
    const wrapped: typeof run = (job, token, signal) => {
      seen.push(job)
      return run(job, token, signal)
    }
    const { settled } = startWorker({ wrapped })
    const { id = '' } = await queue.add('own.slow', {})
    const { job } = await settled()
    const stored = await fields(id, 'timestamp', 'processedOn', 'finishedOn')
    expect(stored.map((time) => isClose(time, trueNow()))).toEqual([true, true, true])
    expect([seen[0]?.processedOn, job.finishedOn]).toEqual([expect.any(Number), expect.any(Number)])
    expect([seen[0]?.processedOn, job.finishedOn].map((time) => isClose(time, Date.now()))).toEqual([true, true])
    expect(ended()).toMatchObject([{ verdict: 'completed' }])
  })

  it('a retry is due by Redis’s clock, and its attempt record has the times of that clock', async () => {
    const { queue, startWorker, dueIn, fields } = stage(() => {
      throw new Error('no')
    })
    const { settled } = startWorker()
    const { id = '' } = await queue.add('own.slow', {})
    await settled()
    expectDueIn(await dueIn(id), HOUR_MS)
    const [stacks] = await fields(id, 'stacktrace')
    const { startedAt, endedAt } = JSON.parse((JSON.parse(stacks ?? '') as string[])[0]?.split('\n')[0] ?? '')
    expect([startedAt, endedAt].map((time) => isClose(time, trueNow()))).toEqual([true, true])
  })

  it('a timeout of a task that Bullpen has enqueued does not pass early', async () => {
    const { startWorker, namespace } = stage(({ input }) => input)
    const enqueuedAt = trueNow()
    const origin = { id: createTaskId('own', enqueuedAt, randomBytes(10)), enqueuedAt, correlationId: 'c' }
    const limits = { queueMs: CLOSE_MS, totalMs: CLOSE_MS, expiresAt: enqueuedAt + CLOSE_MS }
    // The broker has the true time, and does not lead, so that it does not expire the task itself.
    const broker = openPatientBroker({
      ...{ redisUrl: inject('redisUrl'), namespace, queues: ['own'], sizeLimit: 10_000, log: silent },
      ...{ leads: false, now: trueNow },
    })
    onTestFinished(() => broker.close())
    await eventually(() => broker.enqueue({ ...newTask(slow, {}, {}, origin), ...limits }).then(() => true))
    expect((await startWorker().settled()).event).toBe('completed')
  })

  it('the lock of a running job is renewed', async () => {
    const over = Promise.withResolvers<void>()
    onTestFinished(() => over.resolve())
    const { queue, startWorker, redis, keys } = stage(async ({ input }) => {
      await over.promise
      return input
    })
    const { settled } = startWorker({ lockDuration: 30_000, lockRenewTime: 100 })
    const { id = '' } = await queue.add('own.slow', {})
    const token = await eventually(() => lockOwner(redis, keys, id))
    await lockTask(redis, keys, id, token, 15_000)
    await eventually(async () => (await lockLeftMs(redis, keys, id)) > 15_000)
    over.resolve()
    expect((await settled()).event).toBe('completed')
  })

  it('the record of a lost attempt has the time of Redis’s clock', async () => {
    const { queue, startWorker, redis, keys, fields } = stage(({ input }) => input)
    const { worker } = startWorker({ autorun: false })
    const { id = '' } = await queue.add('own.slow', {})
    await worker.getNextJob('lost', { block: false })
    await unlockTasks(redis, keys, id)
    for (let n = 0; n < 2; n++) {
      await redis.del(keys.attachedCheck)
      await worker.backend.moveStalledJobsToWait()
    }
    const [stacks] = await fields(id, 'stacktrace')
    const { startedAt, endedAt } = JSON.parse((JSON.parse(stacks ?? '') as string[])[0]?.split('\n')[0] ?? '')
    expect([startedAt, endedAt].map((time) => isClose(time, trueNow()))).toEqual([true, true])
  })
})
