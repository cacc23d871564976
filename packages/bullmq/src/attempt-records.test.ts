// Attempt records of ends that come from outside the handler: the stored state and reason, and the task's status.
import type { TaskContext, TaskId } from '@bullpen/contract'
import { MAX_LOSSES } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueKeys } from './keys.ts'
import { lockOwner, lockTask } from './locks/stored-lock.fixture.ts'
import { long, type SetupOptions, setup } from './setup.fixture.ts'

const untilAborted = ({ signal }: { readonly signal: AbortSignal }): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

/** A pool that runs one task, whose handler waits for its signal. */
async function running(options: Omit<SetupOptions, 'handle'> = {}) {
  const started = Promise.withResolvers<TaskContext<typeof long>>()
  const aborted = Promise.withResolvers<Error>()
  const handle = async (context: TaskContext<typeof long>): Promise<never> => {
    started.resolve(context)
    return untilAborted(context).catch((reason) => {
      aborted.resolve(reason)
      throw reason
    })
  }
  const all = await setup({ concurrency: 1, ...options, handle })
  const id = await all.enqueue(long)
  const pool = await all.startPool()
  await started.promise
  return { ...all, id, pool, signalled: aborted.promise }
}

/** The namespace's keys, and a connection of the test's own. */
function store({ redisUrl, namespace }: { readonly redisUrl: string; readonly namespace: string }) {
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  return { redis, keys: queueKeys(namespace, 'rig') }
}

const waiting = { status: 'waiting', fencingToken: 1, attemptsMade: 0 }

describe('an attempt record is stored', () => {
  it('for a queue timeout that has passed when the task is fetched: TERMINATED_TIMEOUT (queue_timeout), expired', async () => {
    let called = 0
    const { enqueue, startPool, settled } = await setup({
      handle: ({ input }) => {
        called++
        return input
      },
    })
    // Without expiresAt the expirer does not know it.
    const id = await enqueue(long, { enqueuedAt: Date.now() - 1_000, queueMs: 500 })
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', fencingToken: 0 }],
    })
    expect(called).toBe(0)
  })

  it('for a queue timeout that passes while no worker fetches the task: TERMINATED_TIMEOUT (queue_timeout), expired, by the expirer', async () => {
    const { enqueue, settled } = await setup()
    const now = Date.now()
    const id = await enqueue(long, { enqueuedAt: now, queueMs: 300, expiresAt: now + 300 })
    expect(await settled(id)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', fencingToken: 0 }],
    })
  })

  it('for a cancel of a running task: TERMINATED_STOP_SIGNAL (cancelled), cancelled', async () => {
    const { pool, id, settled } = await running()
    expect(pool.cancel(id)).toBe('cancelling')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
    })
  })

  it('for a hard stop of its slot: TERMINATED_STOP_SIGNAL (slot_stopped), waiting again', async () => {
    const { pool, id, broker } = await running()
    pool.stopSlot(1, 'hard')
    const record = await eventually(async () => {
      const found = await broker.find(id)
      return found?.status === 'waiting' && found
    })
    expect(record).toMatchObject({
      ...waiting,
      attempts: [{ state: 'TERMINATED_STOP_SIGNAL', reason: 'slot_stopped', slot: 1 }],
    })
  })

  it('for a closed parent: TERMINATED_CTX_CLOSED (parent_closed), waiting again', async () => {
    const parent = new AbortController()
    const { pool, id, broker } = await running({ parent: parent.signal })
    parent.abort()
    await eventually(() => pool.state() === 'SHUTDOWN')
    expect(await broker.find(id)).toMatchObject({
      ...waiting,
      attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed' }],
    })
  })

  it('for a snooze: TERMINATED_CTX_CLOSED (snoozed), scheduled, and started again later', async () => {
    const { enqueue, startPool, broker, settled } = await setup({
      handle: ({ snooze, fencingToken, input }) => (fencingToken === 1 ? snooze('700ms') : input),
    })
    const id = await enqueue(long)
    await startPool()
    const record = await eventually(async () => {
      const found = await broker.find(id)
      return found?.status === 'scheduled' && found.fencingToken === 1 && found
    })
    expect(record).toMatchObject({ attemptsMade: 0, attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed' }] })
    expect(record.dueAt).toBeGreaterThan(record.enqueuedAt + 600)
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2, attemptsMade: 1 })
  })

  it('for a total timeout that passes while the task runs: TERMINATED_TIMEOUT (total_timeout), dead', async () => {
    const { enqueue, startPool, settled } = await setup({ handle: untilAborted })
    await startPool()
    const id = await enqueue(long, { totalMs: 400, timeoutMs: 'none' })
    expect(await settled(id)).toMatchObject({
      status: 'dead',
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'total_timeout' }],
    })
  })

  it('for a lost lock only by the new owner: the old handler is signalled, and its end is not recorded', async () => {
    const { id, signalled, broker, ...all } = await running()
    const { redis, keys } = store(all)
    await lockTask(redis, keys, id, 'another owner', 30_000)
    expect(await signalled).toMatchObject({ name: 'AbortError', message: expect.stringContaining('lost the lock') })
    await eventually(() => all.events.some(({ event }) => event === 'attempt.commit_refused'))
    expect(all.events.at(-1)).toMatchObject({
      state: 'TERMINATED_CTX_CLOSED',
      reason: 'lock_lost',
      refusal: 'lock_lost',
      verdict: undefined,
    })
    expect(all.events.filter(({ event }) => event === 'attempt.ended')).toEqual([])
    expect(await broker.find(id)).toMatchObject({ status: 'active', fencingToken: 1, attemptsMade: 0, attempts: [] })
    expect(await lockOwner(redis, keys, id)).toBe('another owner')
  })

  it('for one worker death too many: RECOVER_ERR (process_lost), dead', async () => {
    const { enqueue, startPool, settled, ...all } = await setup()
    const { redis, keys } = store(all)
    const id: TaskId = await enqueue(long)
    // As its last worker left it: active, without a lock, after as many deaths as are allowed.
    await redis.lmove(keys.wait, keys.active, 'RIGHT', 'LEFT')
    await redis.hset(keys.job(id), { ats: MAX_LOSSES + 1, stc: MAX_LOSSES, processedOn: Date.now() })
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'dead',
      fencingToken: MAX_LOSSES + 1,
      attempts: [{ state: 'RECOVER_ERR', reason: 'process_lost', fencingToken: MAX_LOSSES + 1 }],
    })
  })
})
