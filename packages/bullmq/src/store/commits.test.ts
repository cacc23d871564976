// Commits against a real Redis: each refusal, and answers that are lost on their way.
import { TaskError, type TaskEvent } from '@bullpen/contract'
import { STREAM_START } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { lockOwner, lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import { long, type SetupOptions, setup, short } from '../setup.fixture.ts'

/** Long enough that no lock expires while a test waits. */
const LOCKS = { lockMs: 60_000, renewalMs: 20_000, stallCheckMs: 20_000 }

type Context = Parameters<NonNullable<SetupOptions['handle']>>[0]
type End = (context: Context) => { n: number } | Promise<{ n: number }>

/** Ends when the test stops the slot, which requeues the task. */
const untilStopped: End = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

const VERDICTS: readonly (readonly [verdict: string, end: End])[] = [
  ['completed', () => ({ n: 1 })],
  [
    'retrying',
    () => {
      throw new TaskError('again', 'not now', { retryAfter: '1h' })
    },
  ],
  [
    'dead',
    () => {
      // The message was cut off within an emoji. cjson does not decode the half that is left.
      throw new TaskError('never', 'not ever \ud83d', { retryable: false })
    },
  ],
  ['snoozed', ({ snooze }) => snooze('1h')],
  ['requeued', untilStopped],
]

/** The type of the event that follows each verdict. */
const STREAMED: Readonly<Record<string, string>> = {
  completed: 'ended',
  retrying: 'retrying',
  dead: 'ended',
  snoozed: 'requeued',
  requeued: 'requeued',
}

/** A task whose first attempt has reached its handler, and ends when `end` is called. The pool connects through the proxy. */
async function atWork(end: End, task: typeof short | typeof long = long, options: SetupOptions = {}) {
  const started = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const isStopped = end === untilStopped
  const all = await setup({
    locks: LOCKS,
    ...options,
    // With a second slot, the pool could be about to fetch when the test cuts it off. It would fetch a task that has just returned to the
    // queue, and the task would be active again without anybody running it.
    concurrency: 1,
    handle: async (context) => {
      started.resolve()
      if (context.fencingToken === 1 && !isStopped) await over.promise
      if (context.fencingToken > 1 && isStopped) return { n: context.fencingToken }
      return end(context)
    },
  })
  const proxy = await faultProxy(all.redisUrl)
  const redis = new Redis(all.redisUrl)
  onTestFinished(async () => {
    proxy.mend()
    await all.drain(100, 100)
    await proxy.close()
    redis.disconnect()
  })
  const pool = await all.startPool(proxy.url)
  const id = await all.enqueue(task)
  await started.promise
  return {
    ...all,
    pool,
    proxy,
    redis,
    id,
    keys: queueKeys(all.namespace, 'rig'),
    /** Returns when the handler has ended, and the verdict is on its way. */
    async end() {
      const slot = pool.slots().find(({ task }) => task?.id === id)?.slot ?? 0
      if (isStopped) pool.stopSlot(slot, 'hard')
      else over.resolve()
      await new Promise((resolve) => setImmediate(resolve))
    },
    ends: () => all.events.filter(isEnd),
    status: async () => (await all.broker.find(id))?.status,
    /** The types of the events in the queue's stream, apart from those of later attempts. */
    async streamed() {
      const events = (await all.broker.events('rig').read(STREAM_START, 1_000)).events
      return events.flatMap(({ body }) =>
        'fencingToken' in body && body.fencingToken !== undefined && body.fencingToken > 1 ? [] : [body.type],
      )
    },
  }
}

type EndEvent = TaskEvent & { readonly event: 'attempt.ended' | 'attempt.commit_refused' }
const isEnd = (event: TaskEvent): event is EndEvent =>
  event.event === 'attempt.ended' || event.event === 'attempt.commit_refused'

describe('a commit whose answer is lost', () => {
  it.each(VERDICTS)('is one end, when Redis had carried out the verdict %s', async (verdict, end) => {
    const work = await atWork(end)
    work.proxy.cutAnswers()
    await work.end()
    await eventually(async () => (await work.status()) !== 'active')
    expect(work.ends()).toEqual([])
    work.proxy.reset()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()[0]).toMatchObject({ event: 'attempt.ended', fencingToken: 1, verdict })
    await work.drain()
    expect(work.ends().filter(({ fencingToken }) => fencingToken === 1)).toHaveLength(1)
    expect(await work.streamed()).toEqual(['enqueued', 'started', STREAMED[verdict]])
  })

  it.each(VERDICTS)('is one end, when the script had not reached Redis, for the verdict %s', async (verdict, end) => {
    const work = await atWork(end)
    work.proxy.cut()
    await work.end()
    expect([work.ends(), await work.status()]).toEqual([[], 'active'])
    work.proxy.reset()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()[0]).toMatchObject({ event: 'attempt.ended', fencingToken: 1, verdict })
    await work.drain()
    expect(work.ends().filter(({ fencingToken }) => fencingToken === 1)).toHaveLength(1)
    expect(await work.streamed()).toEqual(['enqueued', 'started', STREAMED[verdict]])
  })

  it('is one end, when another worker has run the task again since', async () => {
    const work = await atWork(({ fencingToken, snooze }) => (fencingToken === 1 ? snooze('1ms') : { n: fencingToken }))
    work.proxy.cutAnswers()
    await work.end()
    await eventually(async () => (await work.status()) !== 'active')
    await work.startPool()
    expect(await work.settled(work.id)).toMatchObject({ status: 'completed', output: { n: 2 } })
    work.proxy.reset()
    await eventually(() => work.ends().length === 2)
    expect(work.ends()).toMatchObject([
      { event: 'attempt.ended', fencingToken: 2, verdict: 'completed' },
      { event: 'attempt.ended', fencingToken: 1, verdict: 'snoozed' },
    ])
  })

  it('is refused if the task is completed by another attempt, and not by this one', async () => {
    const work = await atWork(({ fencingToken }) => ({ n: fencingToken }))
    work.proxy.cut()
    await work.end()
    // The lock expires, and the task runs in another worker.
    await unlockTasks(work.redis, work.keys, work.id)
    await work.redis.lrem(work.keys.active, 1, work.id)
    await work.redis.rpush(work.keys.wait, work.id)
    await work.startPool()
    expect(await work.settled(work.id)).toMatchObject({ status: 'completed', output: { n: 2 } })
    work.proxy.reset()
    await eventually(() => work.ends().length === 2)
    expect(work.ends()).toMatchObject([
      { event: 'attempt.ended', fencingToken: 2 },
      { event: 'attempt.commit_refused', fencingToken: 1, refusal: 'lock_lost', verdict: 'completed' },
    ])
    expect(await work.settled(work.id)).toMatchObject({ output: { n: 2 }, attemptsMade: 1 })
  })
})

/** A Redis that refuses writes between `refuse` and `accept`. */
async function refusingRedis() {
  const redis = await privateRedis()
  await redis.start()
  const admin = new Redis(redis.url)
  onTestFinished(() => admin.disconnect())
  const refusals = async () => Number(/NOREPLICAS:count=(\d+)/.exec(await admin.info('errorstats'))?.[1] ?? 0)
  return {
    redisUrl: redis.url,
    refuse: () => admin.config('SET', 'min-replicas-to-write', '1'),
    accept: () => admin.config('SET', 'min-replicas-to-write', '0'),
    untilRefused: (times: number) => eventually(async () => (await refusals()) >= times),
  }
}

describe('a commit that comes while Redis refuses writes', () => {
  it.each(VERDICTS)('is one end once Redis accepts writes again, for the verdict %s', async (verdict, end) => {
    const { refuse, accept, untilRefused, redisUrl } = await refusingRedis()
    const work = await atWork(end, long, { redisUrl })
    await refuse()
    await work.end()
    await untilRefused(5)
    expect([work.ends(), await work.status()]).toEqual([[], 'active'])
    await accept()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()[0]).toMatchObject({ event: 'attempt.ended', fencingToken: 1, verdict })
    await work.drain()
    expect(work.ends().filter(({ fencingToken }) => fencingToken === 1)).toHaveLength(1)
    expect(await work.streamed()).toEqual(['enqueued', 'started', STREAMED[verdict]])
  })

  it('is refused when a lock lasts no longer, and the task runs again', async () => {
    const { refuse, accept, redisUrl } = await refusingRedis()
    // The lock must not expire before Redis refuses the commit, even if the machine is paused for 5 s.
    const locks = { lockMs: 7_000, renewalMs: 500, stallCheckMs: 500 }
    const work = await atWork(({ fencingToken }) => ({ n: fencingToken }), long, { redisUrl, locks })
    await refuse()
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()).toMatchObject([{ event: 'attempt.commit_refused', refusal: 'store_error' }])
    await accept()
    expect(await work.settled(work.id)).toMatchObject({ status: 'completed', output: { n: 2 } })
  })
})

describe('a commit that Redis refuses is an event of its own, and not an end', () => {
  it.each(VERDICTS)('if another attempt has the lock, for the verdict %s', async (verdict, end) => {
    const work = await atWork(end)
    await lockTask(work.redis, work.keys, work.id, 'another owner')
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()).toMatchObject([{ event: 'attempt.commit_refused', refusal: 'lock_taken', verdict }])
    expect(await work.broker.find(work.id)).toMatchObject({ status: 'active', attemptsMade: 0, attempts: [] })
    expect(await lockOwner(work.redis, work.keys, work.id)).toBe('another owner')
    await work.drain()
    expect(work.ends()).toHaveLength(1)
  })

  it("if a Worker without Bullpen's backend has started the task again, which leaves the lock as it is", async () => {
    const work = await atWork(() => ({ n: 1 }), short)
    await work.redis.hincrby(work.keys.job(work.id), 'ats', 1)
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()[0]).toMatchObject({ event: 'attempt.commit_refused', refusal: 'lock_taken' })
  })

  it.each(VERDICTS)('if the lock has expired, for the verdict %s', async (verdict, end) => {
    const work = await atWork(end)
    await unlockTasks(work.redis, work.keys, work.id)
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()).toMatchObject([{ event: 'attempt.commit_refused', refusal: 'lock_lost', verdict }])
    expect((await work.broker.find(work.id))?.attempts).toEqual([])
  })

  it.each(VERDICTS)('if the task was removed, for the verdict %s', async (verdict, end) => {
    const work = await atWork(end)
    await work.redis.del(work.keys.job(work.id))
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()).toMatchObject([{ event: 'attempt.commit_refused', refusal: 'task_removed', verdict }])
  })

  it.each(VERDICTS)('if the task is not active, for the verdict %s', async (verdict, end) => {
    const work = await atWork(end)
    await work.redis.lrem(work.keys.active, 1, work.id)
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()).toMatchObject([{ event: 'attempt.commit_refused', refusal: 'not_active', verdict }])
    const { wait, delayed, completed, failed } = work.keys
    expect(await work.redis.exists(wait, delayed, completed, failed)).toBe(0)
  })

  it('if the job has children that have not finished', async () => {
    const work = await atWork(() => ({ n: 1 }), short)
    await work.redis.sadd(`${work.keys.job(work.id)}:dependencies`, 'child')
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()[0]).toMatchObject({ event: 'attempt.commit_refused', refusal: 'has_children' })
    await work.redis.del(`${work.keys.job(work.id)}:dependencies`)
  })

  it('if Redis answers with an error', async () => {
    const work = await atWork(() => ({ n: 1 }), short)
    await work.redis.set(work.keys.completed, 'not a sorted set')
    await work.end()
    await eventually(() => work.ends().length > 0)
    expect(work.ends()[0]).toMatchObject({ event: 'attempt.commit_refused', refusal: 'store_error' })
    await work.redis.del(work.keys.completed)
  })
})
