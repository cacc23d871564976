// The repair of the status index and of the totals, on a queue that plain BullMQ has used as well.
import { type TaskContext, TaskError, type TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { expireTasks } from '../../leader/expirer.ts'
import { readTotals } from '../../queries/counts.ts'
import { long, setup, short } from '../../setup.fixture.ts'
import { FIRST_PAGE, repairIndex, repairPage } from './index-repair.ts'

const handle = ({ input: { n } }: TaskContext<typeof long>): never => {
  throw n === 0 ? new TaskError('busy', '', { retryAfter: '1h' }) : new TaskError('gone', '', { retryable: false })
}

/** A queue in which Bullpen has left a task in every status that is not active. */
async function used() {
  // A leader would repair the index as well, and could be first.
  const all = await setup({ handle, leads: false })
  const redis = new Redis(all.redisUrl, { maxRetriesPerRequest: null })
  const options = { connection: redis, prefix: prefixOf(all.namespace, 'rig') }
  const plain = new Queue('rig', options)
  onTestFinished(async () => {
    await plain.close()
    redis.disconnect()
  })
  const keys = queueKeys(all.namespace, 'rig')
  const { broker, enqueue } = all
  const retrying = await enqueue(long)
  const dead = await enqueue(long, { input: { n: 1 } })
  await all.startPool()
  await all.settled(dead)
  await eventually(async () => (await broker.find(retrying))?.status === 'retrying')
  await all.drain()
  const cancelled = await enqueue(long)
  await broker.cancel(cancelled, { stoppable: true })
  const now = Date.now()
  const expired = await enqueue(long, { enqueuedAt: now - 2, expiresAt: now - 1, queueMs: 1 })
  await expireTasks(redis, keys, { fencing: 1, now: () => now, process: 'test', caller: 'test', onExpired: () => {} })
  const scheduled = await enqueue(short, { delayMs: 3_600_000 })
  const ids = { retrying, dead, cancelled, expired, scheduled } as const
  const listed = async (): Promise<Partial<Record<TaskStatus, readonly string[]>>> =>
    Object.fromEntries(
      await Promise.all(
        TASK_STATUSES.map(async (status) => {
          const { tasks } = await broker.list({ queue: 'rig', status, limit: 500, cursor: undefined })
          return [status, tasks.map(({ id }) => id)] as const
        }),
      ),
    )
  return { ...all, redis, plain, options, keys, ids, listed, repair: () => repairIndex(redis, keys) }
}

describe('a repair', () => {
  it('of a queue that only Bullpen has used finds nothing', async () => {
    const { repair, redis, keys } = await used()
    expect(await repair()).toBe(0)
    expect(await redis.hget(keys.totals, 'drift')).toBeNull()
  })

  it('puts tasks that are in no part into the part that their own fields say', async () => {
    const { repair, redis, keys, ids, listed } = await used()
    const before = await listed()
    await redis.del(keys.scheduled, keys.retrying, keys.dead, keys.cancelled, keys.expired)
    expect(await repair()).toBe(5)
    expect(await listed()).toEqual(before)
    expect(before).toMatchObject({ cancelled: [ids.cancelled], expired: [ids.expired], retrying: [ids.retrying] })
    expect(await redis.hget(keys.totals, 'drift')).toBe('5')
    expect(await repair()).toBe(0)
  })

  it('corrects tasks that are in two parts, that have another score there, or that are no longer in the set', async () => {
    const { repair, redis, keys, ids, listed } = await used()
    const before = await listed()
    await redis.zadd(keys.dead, 1, ids.cancelled)
    await redis.zadd(keys.expired, 1, ids.expired)
    await redis.zadd(keys.scheduled, 1, 'gone')
    await redis.zadd(keys.cancelled, 1, ids.scheduled)
    expect(await repair()).toBe(4)
    expect(await listed()).toEqual(before)
    expect(await redis.zscore(keys.expired, ids.expired)).toBe(await redis.zscore(keys.failed, ids.expired))
    expect(await repair()).toBe(0)
  })

  it('corrects the index and the totals after a Queue and a Worker of plain BullMQ, and counts what it corrects', async () => {
    const { repair, redis, keys, plain, options, ids, broker } = await used()
    await plain.add('plain', {}, { jobId: 'later', delay: 3_600_000 })
    await plain.add('plain', {}, { jobId: 'fails' })
    await plain.add('plain', {}, { jobId: 'retries', attempts: 2, backoff: { type: 'fixed', delay: 3_600_000 } })
    await plain.add('plain', {}, { jobId: 'completes' })
    const worker = new Worker(
      'rig',
      async ({ id }) => {
        if (id === 'fails' || id === 'retries') throw new Error('no')
      },
      options,
    )
    onTestFinished(() => worker.close())
    await eventually(async () => (await redis.zcard(keys.completed)) === 1 && (await redis.zcard(keys.failed)) === 4)
    await eventually(async () => (await redis.zscore(keys.delayed, 'retries')) !== null)
    await worker.close()
    await plain.remove(ids.scheduled)
    await plain.remove(ids.expired)
    // Two tasks joined `delayed` and one joined `failed`. A task left each, and is still in its part.
    // Four tasks were added and two removed, so that two more are there than were counted. Their bytes are wrong as well.
    expect(await repair()).toBe(3 + 2 + 2 + 1)
    expect(await broker.counts('rig')).toEqual({
      scheduled: 1,
      waiting: 0,
      active: 0,
      retrying: 2,
      completed: 1,
      dead: 2,
      cancelled: 1,
      expired: 0,
    })
    expect(await readTotals(redis, keys)).toMatchObject({ accepted: 7, removed: 0, drift: 8, unaccounted: 0 })
    expect(await repair()).toBe(0)
  })

  it('adds tasks that plain BullMQ has removed to the total of removed tasks', async () => {
    const { repair, redis, keys, plain, ids } = await used()
    await plain.remove(ids.dead)
    await plain.remove(ids.retrying)
    // Each was also still in its part, and the retrying one was charged.
    expect(await repair()).toBe(2 + 2 + 1)
    expect(await readTotals(redis, keys)).toMatchObject({ accepted: 5, removed: 2, drift: 5, unaccounted: 0 })
  })

  it.each([
    ['before', ['repair', 'remove']],
    ['after', ['remove', 'repair']],
  ] as const)(
    '%s a Queue with Bullpen’s backend removes an orphaned job counts the job as removed once',
    async (_, steps) => {
      const { repair, redis, keys, ids, broker } = await used()
      const orphan = ids.scheduled
      await redis.multi().zrem(keys.delayed, orphan).zrem(keys.scheduled, orphan).exec()
      const [queue] = broker.boardQueues
      for (const step of steps) await (step === 'repair' ? repair() : queue?.removeOrphanedJobs())
      expect(await redis.exists(keys.job(orphan))).toBe(0)
      const totals = await readTotals(redis, keys)
      expect(totals).toMatchObject({ accepted: 5, removed: 1, unaccounted: 0 })
      expect(await repair()).toBe(0)
    },
  )

  it('looks at a bounded number of tasks in each script, and finds every wrong entry over its pages', async () => {
    const { repair, redis, keys, enqueue, listed } = await used()
    for (let n = 0; n < 450; n++) await enqueue(short, { delayMs: 3_600_000 + n })
    const before = await listed()
    await redis.del(keys.scheduled)
    let pages = 0
    let repaired = 0
    for (let at: typeof FIRST_PAGE | undefined = FIRST_PAGE; at !== undefined; pages++) {
      const page: Awaited<ReturnType<typeof repairPage>> = await repairPage(redis, keys, at)
      expect(page.repaired).toBeLessThan(200)
      repaired += page.repaired
      at = page.next
    }
    expect(repaired).toBe(451)
    // At least 4 of the delayed set, and one for each other set and for the totals.
    expect(pages).toBeGreaterThan(10)
    expect(await listed()).toEqual(before)
    expect(await repair()).toBe(0)
  })

  it('by two processes at the same time counts each entry once', async () => {
    const { repair, redis, keys } = await used()
    await redis.del(keys.scheduled, keys.retrying, keys.dead, keys.cancelled, keys.expired)
    const counted = await Promise.all([repair(), repair(), repair()])
    expect(counted.reduce((sum, each) => sum + each)).toBe(5)
    expect(await repair()).toBe(0)
  })
})
