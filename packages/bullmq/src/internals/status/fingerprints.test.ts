// The index of dead tasks by fingerprint: its bound, its repair, and tasks that plain BullMQ has failed.
import { TaskError, type TaskId } from '@bullpen/contract'
import { MAX_FINGERPRINTS } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { runScript } from '../../scripts/script.ts'
import { long, setup } from '../../setup.fixture.ts'
import { indexDeadScript } from '../../store/scripts.ts'
import { repairIndex } from './index-repair.ts'
import { encodeKind, kindOfReason } from './stored-kind.ts'

async function openQueue() {
  const all = await setup({
    leads: false,
    handle: ({ input }) => {
      throw new TaskError('gone', `no customer ${input.n}`, { retryable: false })
    },
  })
  const redis = new Redis(all.redisUrl, { maxRetriesPerRequest: null })
  const keys = queueKeys(all.namespace, 'rig')
  const plain = new Queue('rig', { connection: redis, prefix: prefixOf(all.namespace, 'rig') })
  onTestFinished(async () => {
    await plain.close()
    redis.disconnect()
  })
  /** Ends this many tasks as dead. */
  const die = async (tasks: number): Promise<readonly TaskId[]> => {
    const ids: TaskId[] = []
    for (let n = 0; n < tasks; n++) ids.push(await all.enqueue(long, { input: { n } }))
    await all.startPool()
    for (const id of ids) await all.settled(id)
    await all.drain()
    return ids
  }
  return { ...all, redis, keys, plain, die, counts: () => all.broker.countDead('rig') }
}

it('after the first 1,000 kinds of error, further kinds are counted together', async () => {
  const { redis, keys, die, counts, broker } = await openQueue()
  const ids = await die(3)
  const [{ fingerprint } = { fingerprint: '' }] = await counts()
  await redis.del(keys.fingerprints, keys.fingerprint(fingerprint))
  for (const id of ids) await redis.hdel(keys.job(id), 'fingerprint')
  for (let n = 0; n < MAX_FINGERPRINTS - 1; n++) await redis.hset(keys.fingerprints, `known-${n}`, '{}')
  const entries = ids.flatMap((id, i) => [id, encodeKind(kindOfReason(`DONE_ERROR (${'abc'.charAt(i)}): gone`))])
  await runScript(redis, indexDeadScript, { dead: keys.dead }, { base: keys.base }, entries)
  expect(await counts()).toMatchObject([
    { fingerprint: 'other', code: 'other', count: 2 },
    { code: 'a', count: 1 },
  ])
  // The tasks keep their own codes.
  const found = await broker.searchDead({ queue: 'rig', code: 'c', limit: 10, cursor: undefined })
  expect(found.tasks.map(({ id }) => id)).toEqual([ids[2]])
  await broker.deleteDead(ids[1] as TaskId)
  await broker.deleteDead(ids[2] as TaskId)
  expect(await counts()).toMatchObject([{ code: 'a', count: 1 }])
  expect(await redis.hexists(keys.fingerprints, 'other')).toBe(0)
})

describe('a repair', () => {
  it('indexes the tasks that died before there was an index, with the fingerprints that they would have had', async () => {
    const { redis, keys, die, counts } = await openQueue()
    const ids = await die(3)
    const before = await counts()
    expect(before).toMatchObject([{ code: 'gone', count: 3 }])
    await redis.del(keys.fingerprints, keys.fingerprint(before[0]?.fingerprint ?? ''))
    for (const id of ids) await redis.hdel(keys.job(id), 'fingerprint')
    expect(await counts()).toEqual([])
    expect(await repairIndex(redis, keys)).toBe(0)
    expect(await counts()).toEqual(before)
  })

  it('removes tasks from the index that plain BullMQ has retried or removed', async () => {
    const { redis, keys, die, counts, plain, broker } = await openQueue()
    const [retried, removed, kept] = await die(3)
    await (await plain.getJob(retried ?? ''))?.retry('failed')
    await (await plain.getJob(removed ?? ''))?.remove()
    await repairIndex(redis, keys)
    expect(await counts()).toMatchObject([{ count: 1, newestId: kept }])
    expect(await redis.hget(keys.job(retried ?? ''), 'fingerprint')).toBeNull()
    expect((await broker.find(retried as TaskId))?.status).toBe('waiting')
  })

  it('indexes jobs that a Worker without Bullpen has failed', async () => {
    const { redis, keys, counts, plain } = await openQueue()
    const fail = async () => {
      throw new Error('boom at line 7')
    }
    const worker = new Worker('rig', fail, { connection: redis, prefix: plain.opts.prefix ?? '' })
    const job = await plain.add('plain', {})
    await eventually(() => job.isFailed())
    await worker.close()
    await repairIndex(redis, keys)
    expect(await counts()).toMatchObject([
      { state: 'RECOVER_ERR', code: 'unexpected_error', message: 'boom at line #' },
    ])
  })
})

it.each([
  ['DONE_ERROR (gone): no customer 7', 'DONE_ERROR', 'gone', 'no customer #'],
  ['TERMINATED_TIMEOUT (run_timeout): after 5 s\nand more', 'TERMINATED_TIMEOUT', 'run_timeout', 'after # s and more'],
  ['job stalled more than allowable limit', 'RECOVER_ERR', 'process_lost', 'job stalled more than allowable limit'],
  ['boom 7', 'RECOVER_ERR', 'unexpected_error', 'boom #'],
])('the reason %j has the state %s, the code %s and the message %j', (reason, state, code, message) => {
  expect(kindOfReason(reason)).toMatchObject({ state, code, message })
})
