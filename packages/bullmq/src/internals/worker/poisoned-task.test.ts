// A task whose worker died too often: BullMQ fails the job instead of calling the processor, and the pool reports that end.
import type { PerConcurrencyKey, TaskEvent, TaskId } from '@bullpen/contract'
import { MAX_LOSSES } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { FlowProducer } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { cancelById } from '../../cancel/by-id.ts'
import { prefixOf, queueKeys } from '../../keys.ts'
import { lockOwner, lockTask } from '../../locks/stored-lock.fixture.ts'
import { runScript } from '../../scripts/script.ts'
import { long, setup } from '../../setup.fixture.ts'
import { bullpenBackend } from '../../store/bullpen-backend.ts'
import { noteSurvivalScript } from '../../store/scripts.ts'
import { endAs, scriptProxy } from '../index-model/script-proxy.fixture.ts'

async function stage({ keyLimits }: { readonly keyLimits?: PerConcurrencyKey } = {}) {
  const handled: number[] = []
  const all = await setup({
    roundMs: 50,
    ...(keyLimits && { keyLimits }),
    handle: ({ input, fencingToken }) => {
      handled.push(fencingToken)
      if (input.n === 1) throw new Error('broken')
      return input
    },
  })
  const proxy = await scriptProxy(all.redisUrl)
  const redis = new Redis(all.redisUrl)
  onTestFinished(async () => {
    await all.drain(100, 100)
    proxy.close()
    redis.disconnect()
  })
  const keys = queueKeys(all.namespace, 'rig')
  return {
    ...all,
    handled,
    proxy,
    redis,
    keys,
    about: (id: string): TaskEvent[] => all.events.filter((event) => 'id' in event && event.id === id),
    /** Adds a task as its last worker left it: active, without a lock, after as many deaths as a task survives. */
    async poison(n = 0) {
      const id = await all.enqueue(long, { input: { n }, maxAttempts: 1 })
      await redis.lmove(keys.wait, keys.active, 'RIGHT', 'LEFT')
      await redis.hset(keys.job(id), { ats: MAX_LOSSES + 1, stc: MAX_LOSSES, processedOn: Date.now() })
      return id
    },
  }
}

const dead = (id: string) => ({ event: 'task.dead', queue: 'rig', task: 'rig.long', id, reason: 'process_lost' })

it('the end of the task is reported, and its handler is not called', async () => {
  const { poison, startPool, settled, about, handled } = await stage()
  const id = await poison()
  await startPool()
  expect(await settled(id)).toMatchObject({ status: 'dead', fencingToken: MAX_LOSSES + 1 })
  await eventually(() => about(id).length > 0)
  expect(about(id)).toEqual([dead(id)])
  expect(handled).toEqual([])
})

it('a task whose last process lives after all is started again', async () => {
  const { poison, startPool, settled, about, redis, keys } = await stage()
  const id = await poison()
  await eventually(async () => (await redis.hexists(keys.job(id), 'defa')) === 1)
  const note = () => runScript(redis, noteSurvivalScript, { job: keys.job(id) }, { fencingToken: MAX_LOSSES + 1 })
  // The note may be sent again.
  await note()
  await note()
  expect(await redis.hget(keys.job(id), 'stc')).toBe(`${MAX_LOSSES}`)
  await startPool()
  expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: MAX_LOSSES + 2 })
  expect(about(id)).not.toContainEqual(dead(id))
})

it('a note that comes after a retry on request has forgotten the loss takes nothing back', async () => {
  const { enqueue, startPool, settled, broker, redis, keys } = await stage()
  const id = await enqueue(long, { input: { n: 1 }, maxAttempts: 2 })
  await redis.lmove(keys.wait, keys.active, 'RIGHT', 'LEFT')
  await redis.hset(keys.job(id), { ats: 1, processedOn: Date.now() })
  await eventually(async () => (await redis.hget(keys.job(id), 'lostIn')) === '1')
  // The second attempt fails without a loss, so the task keeps no death.
  const pool = await startPool()
  expect(await settled(id)).toMatchObject({ status: 'dead', fencingToken: 3 })
  pool.pause()
  expect(await redis.hmget(keys.job(id), 'stc', 'deaths')).toEqual(['1', null])
  expect(await broker.retry(id, { request: 'r1', by: '' })).toBe('done')
  await runScript(redis, noteSurvivalScript, { job: keys.job(id) }, { fencingToken: 1 })
  expect(await redis.hget(keys.job(id), 'stc')).toBeNull()
})

it('a task that is retried on request and fails has the record of that failure, and no other one', async () => {
  const { poison, startPool, settled, broker, redis, keys } = await stage()
  const id = await poison(1)
  await startPool()
  const lost = (await settled(id))?.attempts ?? []
  expect(lost.at(-1)).toMatchObject({ fencingToken: MAX_LOSSES + 1, reason: 'process_lost' })
  const [queue] = broker.boardQueues
  await (await queue?.getJob(id))?.retry('failed')
  await eventually(() => redis.zscore(keys.dead, id))
  // BullMQ counts its fetch in order to fail the task, too.
  const failure = { fencingToken: MAX_LOSSES + 3, reason: 'unexpected_error', message: 'Error: broken' }
  const task = await broker.find(id)
  expect(task).toMatchObject({ status: 'dead', fencingToken: MAX_LOSSES + 3 })
  expect(task?.attempts.at(-1)).toMatchObject(failure)
  expect(task?.attempts).toHaveLength(2)
})

it('the end is also reported if a Worker with BullMQ’s own, lower limit has flagged the task', async () => {
  const { enqueue, startPool, settled, about, redis, keys } = await stage()
  const id = await enqueue(long)
  await redis.hset(keys.job(id), { ats: 2, stc: 2, defa: 'job stalled more than allowable limit' })
  await startPool()
  expect(await settled(id)).toMatchObject({ status: 'dead' })
  await eventually(() => about(id).length > 0)
  expect(about(id)).toEqual([dead(id)])
})

it('the fetch with which the task ends uses the rate of its concurrency key', async () => {
  const rate = { max: 1, perMs: 24 * 3_600_000, burst: 1 }
  const { enqueue, startPool, settled, broker, redis, keys } = await stage({ keyLimits: { rate, keys: {} } })
  const turn = { key: 'a', weight: 1 }
  const id = await enqueue(long, { turn })
  await redis.hset(keys.job(id), { ats: 2, stc: 2, defa: 'job stalled more than allowable limit' })
  const next = await enqueue(long, { turn })
  await startPool()
  expect(await settled(id)).toMatchObject({ status: 'dead' })
  expect(await settled(await enqueue(long))).toMatchObject({ status: 'completed' })
  expect(await broker.find(next)).toMatchObject({ status: 'waiting', waitsFor: { kind: 'rate' } })
})

it.each(['before', 'after'] as const)(
  'the end of the task is reported once if the connection is lost %s the script that ends it',
  async (when) => {
    const { poison, startPool, settled, about, proxy, enqueue, drain } = await stage()
    const id = await poison()
    const fault = Promise.withResolvers<TaskEvent[]>()
    proxy.arm({ ...endAs('dead'), when, onFault: () => fault.resolve(about(id)) })
    await startPool(proxy.url)
    expect(await fault.promise).toEqual([])
    expect(await settled(id)).toMatchObject({ status: 'dead' })
    await eventually(() => about(id).length > 0)
    // The pool runs other tasks afterwards.
    expect(await settled(await enqueue(long))).toMatchObject({ status: 'completed' })
    await drain()
    expect(about(id)).toEqual([dead(id)])
  },
)

it('the end of the task is not reported if Redis refuses it', async () => {
  const { poison, startPool, about, proxy, redis, keys, drain } = await stage()
  const id = await poison()
  const stolen = Promise.withResolvers<void>()
  proxy.arm({
    ...endAs('dead'),
    when: 'before',
    onFault: () => void lockTask(redis, keys, id, 'another owner').then(() => stolen.resolve()),
  })
  await startPool(proxy.url)
  await stolen.promise
  await drain()
  expect(about(id)).toEqual([])
  expect(await lockOwner(redis, keys, id)).toBe('another owner')
})

it('the parent of a flow that BullMQ fails because of a child is reported as dead, but not as poisoned', async () => {
  const { startPool, redis, keys, namespace, about, redisUrl } = await stage()
  const flows = new FlowProducer({ connection: { url: redisUrl } }, bullpenBackend())
  onTestFinished(() => flows.close())
  const node = { queueName: 'rig', prefix: prefixOf(namespace, 'rig'), data: {} }
  const { job, children = [] } = await flows.add({
    ...node,
    name: 'rig.long',
    children: [{ ...node, name: 'rig.long', opts: { failParentOnFailure: true, delay: 3_600_000 } }],
  })
  const id = job.id ?? ''
  const child = (children[0]?.job.id ?? '') as TaskId
  await cancelById(redis, keys, { request: 'r1', id: child, stoppable: true, now: Date.now(), by: '', process: 'test' })
  await startPool()
  await eventually(() => redis.zscore(keys.dead, id))
  await eventually(() => about(id).length > 0)
  expect(about(id)).toEqual([{ ...dead(id), reason: 'unexpected_error' }])
})
