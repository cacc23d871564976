// Ends that nothing but a cause from outside brings, as they are stored: state and reason, and the task's status.
import type { TaskContext, TaskId } from '@bullpen/contract'
import { MAX_DEATHS } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueKeys } from './keys.ts'
import { long, type RigOptions, rig } from './setup.fixture.ts'

const untilTold = ({ signal }: { readonly signal: AbortSignal }): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

/** A pool that runs one task, whose handler has begun and waits for its signal. */
async function running(options: Omit<RigOptions, 'handle'> = {}) {
  const begun = Promise.withResolvers<TaskContext<typeof long>>()
  const left = Promise.withResolvers<Error>()
  const handle = async (context: TaskContext<typeof long>): Promise<never> => {
    begun.resolve(context)
    return untilTold(context).catch((told) => {
      left.resolve(told)
      throw told
    })
  }
  const all = await rig({ concurrency: 1, ...options, handle })
  const id = await all.enqueue(long)
  const pool = await all.startPool()
  await begun.promise
  return { ...all, id, pool, told: left.promise }
}

/** The namespace's keys, and a connection of the test's own. */
function store({ redisUrl, namespace }: { readonly redisUrl: string; readonly namespace: string }) {
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  return { redis, keys: queueKeys(namespace, 'rig') }
}

const waiting = { status: 'waiting', fencingToken: 1, attemptsMade: 0 }

describe('an end is stored', () => {
  it('of a queue timeout that has passed when the task is taken: TERMINATED_TIMEOUT (queue), expired', async () => {
    let called = 0
    const { enqueue, startPool, settled } = await rig({
      handle: ({ input }) => {
        called++
        return input
      },
    })
    // No expiresAt: the sweep does not know it.
    const id = await enqueue(long, { enqueuedAt: Date.now() - 1_000, queueMs: 500 })
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', fencingToken: 0 }],
    })
    expect(called).toBe(0)
  })

  it('of a queue timeout that passes while nobody takes the task: TERMINATED_TIMEOUT (queue), expired, by the sweep', async () => {
    const { enqueue, settled } = await rig()
    const now = Date.now()
    const id = await enqueue(long, { enqueuedAt: now, queueMs: 300, expiresAt: now + 300 })
    expect(await settled(id)).toMatchObject({
      status: 'expired',
      fencingToken: 0,
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout', fencingToken: 0 }],
    })
  })

  it('of a cancel while the task runs: TERMINATED_STOP_SIGNAL (cancelled), cancelled', async () => {
    const { pool, id, settled } = await running()
    expect(pool.cancel(id)).toBe('cancelling')
    expect(await settled(id)).toMatchObject({
      status: 'cancelled',
      attempts: [{ state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled' }],
    })
  })

  it('of a hard stop of its worker: TERMINATED_STOP_SIGNAL (slot_stopped), waiting again', async () => {
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

  it('of a closed parent: TERMINATED_CTX_CLOSED (parent_closed), waiting again', async () => {
    const parent = new AbortController()
    const { pool, id, broker } = await running({ parent: parent.signal })
    parent.abort()
    await eventually(() => pool.state() === 'SHUTDOWN')
    expect(await broker.find(id)).toMatchObject({
      ...waiting,
      attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed' }],
    })
  })

  it('of a snooze: TERMINATED_CTX_CLOSED (snoozed), scheduled, and started again then', async () => {
    const { enqueue, startPool, broker, settled } = await rig({
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

  it('of a deadline that passes while the task runs: TERMINATED_TIMEOUT (deadline), dead', async () => {
    const { enqueue, startPool, settled } = await rig({ handle: untilTold })
    await startPool()
    const id = await enqueue(long, { totalMs: 400, timeoutMs: 'none' })
    expect(await settled(id)).toMatchObject({
      status: 'dead',
      attempts: [{ state: 'TERMINATED_TIMEOUT', reason: 'total_timeout' }],
    })
  })

  it('of a lost lock by nobody but the new owner: the handler is told, and what it leaves is not recorded', async () => {
    const { id, told, broker, ...all } = await running()
    const { redis, keys } = store(all)
    await redis.set(keys.lock(id), 'another owner', 'PX', 30_000)
    expect(await told).toMatchObject({ name: 'AbortError', message: expect.stringContaining('lock_lost') })
    await eventually(() => all.events.some(({ event }) => event === 'attempt.ended'))
    expect(all.events.at(-1)).toMatchObject({ state: 'TERMINATED_CTX_CLOSED', reason: 'lock_lost', verdict: 'lost' })
    expect(await broker.find(id)).toMatchObject({ status: 'active', fencingToken: 1, attemptsMade: 0, attempts: [] })
    expect(await redis.get(keys.lock(id))).toBe('another owner')
  })

  it('of a process that died with it once too often: RECOVER_ERR (process_lost), dead', async () => {
    const { enqueue, startPool, settled, ...all } = await rig()
    const { redis, keys } = store(all)
    const id: TaskId = await enqueue(long)
    // As its last process left it: taken, its lock run out, and dead as often as it may be.
    await redis.lmove(keys.wait, keys.active, 'RIGHT', 'LEFT')
    await redis.hset(keys.job(id), { ats: MAX_DEATHS + 1, stc: MAX_DEATHS, processedOn: Date.now() })
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'dead',
      fencingToken: MAX_DEATHS + 1,
      attempts: [{ state: 'RECOVER_ERR', reason: 'process_lost', fencingToken: MAX_DEATHS + 1 }],
    })
  })
})
