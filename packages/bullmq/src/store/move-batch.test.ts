// Moves that go out together: which ones do, what one of them meets, and what happens if their reply is lost.
import { randomUUID } from 'node:crypto'
import type { CommitRefusal } from '@bullpen/contract'
import { eventually, faultProxy } from '@bullpen/testkit'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished, vi } from 'vitest'
import { encodeKind } from '../internals/status/stored-kind.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { unlockTasks } from '../locks/stored-lock.fixture.ts'
import { backendFactory } from './backend.ts'
import { completed, idOf, newOne, queueOfMoves } from './move-batch.fixture.ts'
import type { MoveReply } from './move-batch.ts'

/** A queue with jobs, and a Worker behind a proxy, whose methods a test calls itself. */
async function withWorker(jobs: number, data: unknown = {}) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const commands = new Redis(proxy.url, { maxRetriesPerRequest: null })
  commands.on('error', () => {})
  const prefix = prefixOf(namespace, 'q')
  const queue = new Queue('q', { connection: redis, prefix }, backendFactory({ now: Date.now }))
  const options = { connection: commands, prefix, autorun: false, skipLockRenewal: true, skipStalledCheck: true }
  const worker = new Worker('q', async () => {}, options, backendFactory({ now: Date.now, commands }))
  worker.on('error', () => {})
  onTestFinished(async () => {
    proxy.mend()
    await worker.close(true)
    await queue.obliterate({ force: true })
    await queue.close()
    commands.disconnect()
    redis.disconnect()
    await proxy.close()
  })
  await queue.addBulk(Array.from({ length: jobs }, (_, n) => ({ name: 'x', data, opts: { jobId: `j${n}` } })))
  await worker.waitUntilReady()
  const backend = worker.getBackend()
  const sent = vi.spyOn(commands, 'sendCommand')
  const fetchAll = async (count: number, from = 0): Promise<Job[]> => {
    const fetched = Array.from({ length: count }, (_, n) => worker.getNextJob(`t${from + n}`, { block: false }))
    return (await Promise.all(fetched)).map((job) => job ?? expect.fail('no job has started'))
  }
  const settled: [id: string, refusal?: CommitRefusal][] = []
  return {
    ...{ redis, commands, keys: queueKeys(namespace, 'q'), proxy, queue, worker, fetchAll, settled },
    /** How many commands the Worker has sent since the last call. */
    commandsSent: () => sent.mock.calls.splice(0).length,
    /** Ends a job's attempt as a processor's end does. */
    end(job: Job, fetches = false): Promise<unknown> {
      const { id = '', token = '' } = job
      const settle = (refusal?: CommitRefusal) => settled.push(refusal === undefined ? [id] : [id, refusal])
      if (!settled.some(([each]) => each === id))
        backend.expectEnd({ id, token, verdict: 'completed', fencingToken: 1, settled: settle })
      return job.moveToCompleted({}, token, fetches)
    },
  }
}

/** The id of the job that an end has started. */
const startedBy = (end: PromiseSettledResult<unknown> | undefined): unknown =>
  end?.status === 'fulfilled' && Array.isArray(end.value) ? end.value[1] : undefined

it('the moves of one turn are one command, and those that come while it is on its way are the next one', async () => {
  const { fetchAll, end, commandsSent } = await withWorker(12)
  await fetchAll(1)
  commandsSent()
  const jobs = await fetchAll(5, 1)
  expect(commandsSent()).toBe(1)
  const first = jobs.slice(0, 2).map((job) => end(job, true))
  await new Promise(setImmediate)
  const more = [...jobs.slice(2).map((job) => end(job)), ...(await Promise.all(first))]
  await Promise.all(more)
  expect(commandsSent()).toBe(2)
})

it('a refused end keeps neither the others from theirs nor any but itself from its start', async () => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  await add(Array.from({ length: 6 }, () => newOne()))
  const [a = '', b = '', c = ''] = await start('a', 'b', 'c')
  await unlockTasks(redis, keys, b)
  const replies = await moves(Date.now(), [
    { token: 'a', starts: true, end: completed(a) },
    { token: 'b', starts: true, end: completed(b) },
    { token: 'c', starts: true, end: completed(c) },
    { token: 'd', starts: true },
  ])
  expect(replies.map((reply) => [reply[0], idOf(reply) !== undefined])).toEqual([
    [0, true],
    [-2, false],
    [0, true],
    [0, true],
  ])
  expect(await redis.zrange(keys.completed, '0', '-1')).toEqual([a, c].toSorted())
})

it('an end that fails in Redis fails alone', async () => {
  const { fetchAll, end, redis, keys, settled, worker } = await withWorker(6)
  const [a, b, c] = await fetchAll(3)
  if (a === undefined || b === undefined || c === undefined) expect.fail()
  await redis.set(keys.failed, 'not a sorted set')
  const [first, broken, last] = await Promise.allSettled([
    end(a, true),
    b.moveToFailed(new Error('no'), b.token ?? '', true),
    end(c, true),
  ])
  expect([first, last].map(startedBy)).toEqual(['j3', 'j4'])
  expect(broken).toMatchObject({ reason: { name: 'ReplyError', message: expect.stringContaining('WRONGTYPE') } })
  expect(settled).toEqual([['j0'], ['j2']])
  expect(await worker.getNextJob('t9', { block: false })).toMatchObject({ id: 'j5' })
  await redis.del(keys.failed)
})

it.each([
  ['BullMQ’s option removes', ['keepCount', 0, 'keepLimit', 1_000]],
  ['the retention removes', ['keptCount', 0]],
])('the end of a task that %s at once is recognised if it is sent again', async (_how, more) => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  const task = newOne()
  await add([task])
  await start('token')
  const batch = [{ token: 'token', starts: false, end: { ...completed(task.id), more } }]
  expect(await moves(Date.now(), batch)).toEqual([[0, 0]])
  expect(await redis.exists(keys.job(task.id), keys.completed)).toBe(0)
  expect(await moves(Date.now(), batch, { isRepeat: true })).toEqual([[0, 0]])
})

it('a start that fails in Redis does not undo the end before it', async () => {
  const { fetchAll, end, redis, keys, settled, worker } = await withWorker(3)
  const [a] = await fetchAll(1)
  await redis.del(keys.wait)
  await redis.set(keys.wait, 'not a list')
  expect(await end(a ?? expect.fail(), true)).toEqual([])
  await expect(worker.getNextJob('t9', { block: false })).rejects.toThrow('WRONGTYPE')
  expect(settled).toEqual([['j0']])
  await redis.del(keys.wait)
})

/** A start may reply with the fields of a task in any order, and the last value of a field counts. */
const withFields = ([code, start]: MoveReply) => {
  const [fields = 0, ...rest] = start === 0 || start === 'later' ? [] : start
  const pairs =
    fields === 0 ? [] : fields.flatMap((name, i) => (i % 2 === 0 && name !== 'lock' ? [[name, fields[i + 1]]] : []))
  return [code, Object.fromEntries(pairs), ...rest]
}

it('a batch that is sent twice changes nothing the second time, and replies with the tasks that it has started', async () => {
  const { add, start, moves, state } = queueOfMoves()
  await add(Array.from({ length: 9 }, () => newOne()))
  const tokens = ['a', 'b', 'c']
  const ids = await start(...tokens)
  const ends = ids.map((id, i) => ({ token: tokens[i] ?? '', starts: true, end: completed(id) }))
  const batch = [...ends, { token: 'd', starts: true }]
  const first = await moves(Date.now(), batch)
  expect(new Set(first.map(idOf)).size).toBe(4)
  const before = await state()
  const second = await moves(Date.now(), batch, { isRepeat: true })
  expect(second.map(withFields)).toEqual(first.map(withFields))
  expect(await state()).toEqual(before)
  // Without the mark, no end is stored twice either.
  expect(await moves(Date.now(), ends)).toEqual(ids.map(() => [0, 0]))
  expect(await state()).toEqual(before)
})

it.each([{ kept: [] }, { kept: ['keepCount', '0'] }])(
  'an end without a record is recognised by the start that follows it ($kept)',
  async ({ kept }) => {
    const { add, start, moves, state } = queueOfMoves()
    await add([newOne(), newOne()])
    const [id = ''] = await start('a')
    // As BullMQ itself fails a task, for example because Redis has refused its completion.
    const kind = encodeKind({ fingerprint: 'f', state: 'DONE_ERROR', code: 'no', message: 'no' })
    const more = [...kept, 'maxAttempts', 1, 'fingerprint', kind]
    const end = { id, verdict: 'dead', value: 'no', end: undefined, fields: undefined, more } as const
    const batch = [{ token: 'a', starts: true, end }]
    const first = await moves(Date.now(), batch)
    expect(first.map(idOf)).toEqual([expect.any(String)])
    const before = await state()
    const second = await moves(Date.now(), batch, { isRepeat: true })
    expect(second.map(withFields)).toEqual(first.map(withFields))
    expect(await state()).toEqual(before)
  },
)

it('a batch that is marked, but has not been run before, does the same as without the mark', async () => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  await add(Array.from({ length: 5 }, () => newOne()))
  const [a = '', b = ''] = await start('a', 'b')
  const ends = [a, b].map((id, i) => ({ token: i === 0 ? 'a' : 'b', starts: true, end: completed(id) }))
  const replies = await moves(Date.now(), [...ends, { token: 'c', starts: true }], { isRepeat: true })
  expect(new Set([a, b, ...replies.map(idOf)]).size).toBe(5)
  expect([await redis.zcard(keys.completed), await redis.llen(keys.active)]).toEqual([2, 3])
})

it('a start finds the lane that another move of its batch has made', async () => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  await add([newOne({ turn: { key: 'a', weight: 1 } })])
  const [id = ''] = await start('a')
  // A start that finds nothing forgets the turns.
  await moves(Date.now(), [{ token: 'b', starts: true }])
  expect(await redis.exists(keys.turnState)).toBe(0)
  await add([newOne()])
  const requeued = { id, verdict: 'requeued', value: '', end: undefined, fields: undefined } as const
  const replies = await moves(Date.now(), [
    { token: 'c', starts: true },
    { token: 'a', starts: false, end: requeued },
    { token: 'd', starts: true },
  ])
  expect(replies.map(idOf)).toEqual([expect.any(String), undefined, id])
})

it('the charges of all tasks that end in a batch are refunded', async () => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  await add(Array.from({ length: 3 }, () => newOne()))
  const ids = await start('a', 'b', 'c')
  expect(Number(await redis.hget(keys.totals, 'bytes'))).toBeGreaterThan(0)
  await moves(
    Date.now(),
    ids.map((id, i) => ({ token: 'abc'.charAt(i), starts: false, end: completed(id) })),
  )
  expect(await redis.hget(keys.totals, 'bytes')).toBe('0')
})

it('two ends of one attempt in one batch are one end', async () => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  await add(Array.from({ length: 3 }, () => newOne()))
  const [id = ''] = await start('a')
  const end = { token: 'a', starts: true, end: completed(id) }
  const [first, second] = await moves(Date.now(), [end, end])
  expect([first?.[0], second]).toEqual([0, [0, 0]])
  expect([await redis.zcard(keys.completed), await redis.llen(keys.active)]).toEqual([1, 1])
})

it('a batch whose reply is lost is sent again: each end is settled once, and the Worker gets the tasks that have started', async () => {
  const { fetchAll, end, proxy, redis, keys, settled } = await withWorker(8)
  const jobs = await fetchAll(4)
  proxy.cutAnswers()
  const ends = Promise.allSettled(jobs.map((job) => end(job, true)))
  await eventually(async () => (await redis.zcard(keys.completed)) === 4)
  expect(settled).toEqual([])
  proxy.reset()
  expect((await ends).map(startedBy)).toEqual(['j4', 'j5', 'j6', 'j7'])
  expect(settled).toEqual([['j0'], ['j1'], ['j2'], ['j3']])
  expect(await redis.llen(keys.active)).toBe(4)
})

it('each end of a batch that was abandoned can be sent again', async () => {
  const { fetchAll, end, proxy, commands, redis, keys, settled } = await withWorker(3)
  const jobs = await fetchAll(3)
  proxy.cut()
  const ends = Promise.allSettled(jobs.map((job) => end(job)))
  await new Promise(setImmediate)
  commands.disconnect()
  expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect([settled, await redis.zcard(keys.completed)]).toEqual([[], 0])
  proxy.mend()
  await commands.connect()
  await Promise.all(jobs.map((job) => job.moveToCompleted({}, job.token ?? '', false)))
  expect(settled).toEqual([['j0'], ['j1'], ['j2']])
})

it('large tasks start in several batches', async () => {
  const { add, moves } = queueOfMoves()
  await add(
    Array.from({ length: 6 }, () => newOne()),
    JSON.stringify('x'.repeat(100_000)),
  )
  const starts = Array.from({ length: 6 }, (_, n) => ({ token: `t${n}`, starts: true }))
  const replies = await moves(Date.now(), starts)
  expect(replies.map((reply) => idOf(reply) !== undefined)).toEqual([true, true, true, false, false, false])
  expect(replies.slice(3)).toEqual([
    [0, 'later'],
    [0, 'later'],
    [0, 'later'],
  ])
  const { fetchAll, end, commandsSent } = await withWorker(12, 'x'.repeat(100_000))
  const jobs = await fetchAll(6)
  expect(jobs.map(({ id }) => id)).toEqual(['j0', 'j1', 'j2', 'j3', 'j4', 'j5'])
  expect(commandsSent()).toBeLessThanOrEqual(4)
  const ends = await Promise.allSettled(jobs.map((job) => end(job, true)))
  expect(ends.map(startedBy).toSorted()).toEqual(['j10', 'j11', 'j6', 'j7', 'j8', 'j9'])
})

it('two attempts of one task that end at once in one process each have their own end', async () => {
  const { redis, keys, fetchAll, worker } = await withWorker(1)
  const [job = expect.fail()] = await fetchAll(1)
  const { id = '', token = '' } = job
  const settled: unknown[] = []
  const backend = worker.getBackend()
  const settle = (name: string) => (refusal?: CommitRefusal) => settled.push([name, refusal])
  const snoozed = { verdict: 'snoozed', delayMs: 1_000, stacks: '["snoozed"]' } as const
  const failed = { verdict: 'retrying', delayMs: 5_000, reason: 'no', stacks: '["failed"]' } as const
  // The first one has lost its lock.
  backend.expectEnd({ id, token: 'older', ...snoozed, settled: settle('older') })
  backend.expectEnd({ id, token, ...failed, settled: settle('newer') })
  const older = backend.moveToDelayed(id, Date.now(), 9, 'older', { skipAttempt: true })
  const newer = backend.moveToDelayed(id, Date.now(), 9, token, {})
  await expect(older).rejects.toMatchObject({ code: -6 })
  await newer
  expect(settled).toEqual([
    ['older', 'lock_taken'],
    ['newer', undefined],
  ])
  expect(await redis.hmget(keys.job(id), 'delay', 'stacktrace', 'failedReason', 'atm')).toEqual([
    '5000',
    '["failed"]',
    'no',
    '1',
  ])
  expect(await redis.zrange(keys.retrying, '0', '-1')).toEqual([id])
})
