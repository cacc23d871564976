// A Redis that has used all of its memory: what is running can end, and nothing is added.
import { defineCatalogue, followUp } from '@bullpen/contract'
import { planFollowUps } from '@bullpen/engine/internal'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from './keys.ts'
import { lockLeftMs, lockOwner, lockTask } from './locks/stored-lock.fixture.ts'
import { runScript } from './scripts/script.ts'
import { long, setup, short } from './setup.fixture.ts'
import { bullpenBackend } from './store/bullpen-backend.ts'
import { registerTaskScript, writeEventsScript } from './store/scripts.ts'

const catalogue = defineCatalogue(short, long)

async function fullRedis({ leads = true }: { readonly leads?: boolean } = {}) {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const running: (() => void)[] = []
  const stage = await setup({
    redisUrl: server.url,
    concurrency: 2,
    leads,
    locks: { lockMs: 30_000, renewalMs: 100 },
    handle: ({ input, signal }) =>
      new Promise((resolve, reject) => {
        running.push(() => resolve(input))
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
  })
  const keys = queueKeys(stage.namespace, 'rig')
  return {
    ...stage,
    redis,
    redisUrl: server.url,
    keys,
    isIn: (place: 'completed' | 'cancelled' | 'expired', id: string) => eventually(() => redis.zscore(keys[place], id)),
    running,
    fill: () => redis.config('SET', 'maxmemory', '1'),
    empty: () => redis.config('SET', 'maxmemory', '0'),
  }
}

it('a task is refused with redis_full, and no part of it is stored', async () => {
  // A leader would store keys of its own at any time.
  const { enqueue, fill, redis, keys } = await fullRedis({ leads: false })
  await enqueue(short)
  await fill()
  const stored = async () => [(await redis.keys(`${keys.base}*`)).toSorted(), await redis.hgetall(keys.totals)]
  const before = await stored()
  for (const given of [{}, { delayMs: 60_000 }, { tags: ['a'], expiresAt: Date.now() + 60_000 }]) {
    await expect(enqueue(long, given)).rejects.toMatchObject({ code: 'redis_full' })
  }
  expect(await stored()).toEqual(before)
})

it('locks are renewed, and a task that was running ends and the next one is fetched', async () => {
  const { enqueue, startPool, running, fill, redis, keys, isIn } = await fullRedis()
  const [first, second, third] = [await enqueue(long), await enqueue(long), await enqueue(long)]
  await startPool()
  await eventually(() => running.length === 2)
  await fill()
  const left = await lockLeftMs(redis, keys, first)
  await eventually(async () => (await lockLeftMs(redis, keys, first)) > left)
  for (const end of running.splice(0)) end()
  await Promise.all([isIn('completed', first), isIn('completed', second)])
  await eventually(() => running.length === 1)
  running[0]?.()
  await isIn('completed', third)
})

it('a follow-up is enqueued, because its entry takes as much memory', async () => {
  const { enqueue, broker, fill, keys, redis } = await fullRedis()
  const followUps = planFollowUps({ onEnd: [followUp(short, {})] }, { catalogue, correlationId: undefined })
  const id = await enqueue(long, { followUps })
  await fill()
  expect(await broker.cancel(id, { stoppable: true })).toBe('cancelled')
  await eventually(async () => (await redis.llen(keys.wait)) === 1)
  await eventually(async () => (await redis.exists(keys.outbox)) === 0)
})

const LOCK_MS = 30_000

it('a team’s own Worker with Bullpen’s backend renews its locks, and ends its task', async () => {
  const { namespace, broker, enqueue, fill, redisUrl, keys, redis, isIn } = await fullRedis()
  const started = Promise.withResolvers<void>()
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
  const process = async (): Promise<void> => {
    started.resolve()
    await mayEnd
  }
  const options = { connection: { url: redisUrl }, prefix: prefixOf(namespace, 'rig') }
  const worker = new Worker('rig', process, { ...options, lockDuration: LOCK_MS, lockRenewTime: 100 }, bullpenBackend())
  onTestFinished(() => worker.close(true))
  const errors: Error[] = []
  worker.on('error', (error) => errors.push(error))
  const id = await enqueue(short)
  await started.promise
  const token = (await lockOwner(redis, keys, id)) ?? ''
  await fill()
  await redis.config('SET', 'maxmemory', '0')
  await lockTask(redis, keys, id, token, LOCK_MS / 2)
  await fill()
  await eventually(async () => (await lockLeftMs(redis, keys, id)) > LOCK_MS / 2)
  end()
  await isIn('completed', id)
  expect(errors).toEqual([])
  expect(await broker.find(id)).toMatchObject({ status: 'completed', attempts: [{ fencingToken: 1 }] })
})

it('a running task stores a compensation and its events', async () => {
  const { enqueue, startPool, running, fill, redis, keys } = await fullRedis()
  const id = await enqueue(long)
  await startPool()
  await eventually(() => running.length === 1)
  await fill()
  const token = (await lockOwner(redis, keys, id)) ?? ''
  const registration = { token, fencingToken: '1', letter: '', identity: 'undo -', template: '{}' }
  const limits = { nextLetter: 'n', maxLines: 1, maxBytes: 100, mark: '+' }
  const names = { job: keys.job(id), totals: keys.totals }
  expect(await runScript(redis, registerTaskScript, names, { ...registration, ...limits })).toBe('stored')
  const eventBatch = keys.eventBatch('a')
  const tasks = JSON.stringify([[id, token, '']])
  await runScript(redis, writeEventsScript, { eventBatch }, { base: keys.base, number: '1', tasks, maxLogs: 1 })
  expect(await redis.get(eventBatch)).toBe('1')
})

it('a drain requeues the tasks that are running', async () => {
  const { enqueue, startPool, running, fill, drain, redis, keys } = await fullRedis()
  const id = await enqueue(long)
  await startPool()
  await eventually(() => running.length === 1)
  await fill()
  await drain(1, 1_000)
  expect(await redis.lrange(keys.wait, 0, -1)).toEqual([id])
  expect(await redis.hget(keys.job(id), 'stacktrace')).toContain('\\"counted\\":false')
})

it('tasks are cancelled by id and by filter, and expire', async () => {
  const { broker, enqueue, startPool, running, fill, redis, keys, isIn } = await fullRedis()
  const active = await enqueue(long)
  await startPool()
  await eventually(() => running.length === 1)
  const [queue = expect.fail()] = broker.boardQueues
  await queue.pause()
  const [one, many, expired] = [await enqueue(long), await enqueue(short), await enqueue(long)]
  await redis.zadd(keys.expiries, Date.now() + 1_000, expired)
  await fill()
  expect(await broker.cancel(one, { stoppable: true })).toBe('cancelled')
  expect(await broker.cancel(active, { stoppable: true })).toBe('cancelling')
  await broker.cancelMany({ queue: 'rig', task: 'rig.short', before: Date.now(), reason: 'cancelled' })
  await Promise.all([
    isIn('cancelled', one),
    isIn('cancelled', many),
    isIn('cancelled', active),
    isIn('expired', expired),
  ])
})

it('tasks are shown, counted and listed', async () => {
  const { broker, enqueue, fill } = await fullRedis()
  const id = await enqueue(long)
  await fill()
  expect(await broker.find(id)).toMatchObject({ id, status: 'waiting' })
  expect((await broker.counts('rig')).waiting).toBe(1)
  const { tasks } = await broker.list({ queue: 'rig', status: 'waiting', limit: 10, cursor: undefined })
  expect(tasks.map((task) => task.id)).toEqual([id])
})

it('a worker that starts fetches tasks', async () => {
  const { enqueue, startPool, running, fill } = await fullRedis()
  await enqueue(long)
  await fill()
  await startPool()
  await eventually(() => running.length === 1)
})
