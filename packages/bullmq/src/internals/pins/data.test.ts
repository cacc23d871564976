// BullMQ's data in Redis: what a job's hash, the lists and sets, the queue's settings, the locks and the event stream hold.
import { eventually } from '@bullpen/testkit'
import { FlowProducer } from 'bullmq'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DELAYED_SCORE_STEP } from '../status/places.ts'
import { backendOf, plainBullmq } from './plain.fixture.ts'

describe("a job's hash", () => {
  it('holds these fields when the job is added, fetched and completed', async () => {
    const { queue, createWorker, fetch, fields } = await plainBullmq()
    const job = await queue.add('x', { a: 1 }, { attempts: 3, backoff: { type: 'bullpen' } })
    const added = await fields(job)
    expect(added).toEqual({
      name: 'x',
      data: '{"a":1}',
      opts: expect.any(String),
      timestamp: `${job.timestamp}`,
      delay: '0',
      priority: '0',
    })
    expect(JSON.parse(added['opts'] ?? '')).toEqual({ attempts: 3, backoff: { type: 'bullpen' } })
    const fetched = await fetch(createWorker(async () => {}, { name: 'w' }))
    const started = { ...added, ats: '1', processedOn: `${fetched.processedOn}`, pb: 'w' }
    expect(await fields(job)).toEqual(started)
    await fetched.moveToCompleted({ b: 2 }, 'token', false)
    expect(await fields(job)).toEqual({
      ...started,
      atm: '1',
      returnvalue: '{"b":2}',
      finishedOn: `${fetched.finishedOn}`,
    })
  })

  it('holds the reason and the stacks when the job fails, and keeps fields that are not BullMQ’s', async () => {
    const { queue, redis, keys, createWorker, fetch, fields } = await plainBullmq()
    const job = await queue.add('x', {})
    const fetched = await fetch(createWorker(async () => {}))
    await redis.hset(keys.job(job.id ?? ''), 'once:step', '1')
    await fetched.moveToFailed(Object.assign(new Error('said'), { stack: 'stack' }), 'token', false)
    expect(await fields(job)).toMatchObject({
      atm: '1',
      failedReason: 'said',
      stacktrace: '["stack"]',
      finishedOn: expect.any(String),
      'once:step': '1',
    })
  })

  it('has 0 attempts and no backoff in the options of a job that was added without them, and a number as its id', async () => {
    const { queue, createWorker, fetch } = await plainBullmq()
    await queue.add('x', {})
    const fetched = await fetch(
      createWorker(async () => {}),
      'mine',
    )
    expect(fetched).toMatchObject({ id: '1', opts: { attempts: 0, backoff: undefined }, token: 'mine' })
  })

  it('counts no attempt when the job is requeued or snoozed, but every start', async () => {
    const { queue, createWorker, fetch, fields } = await plainBullmq()
    const job = await queue.add('x', {}, { attempts: 3 })
    const worker = createWorker(async () => {})
    await (await fetch(worker)).moveToWait('token')
    const fetched = await fetch(worker)
    const options = { skipAttempt: true, fieldsToUpdate: { stacktrace: '["a"]' } }
    await backendOf(worker).moveToDelayed(fetched.id ?? '', Date.now(), 60_000, 'token', options)
    expect(await fields(job)).toMatchObject({ ats: '2', stacktrace: '["a"]', delay: '60000' })
    expect(await fields(job)).not.toHaveProperty('atm')
  })
})

describe('the places of a queue', () => {
  it('are filled at the left end of the list and emptied at its right end, where a requeued job returns', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    const [first, second] = [await queue.add('x', {}), await queue.add('x', {})]
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([second.id, first.id])
    const fetched = await fetch(createWorker(async () => {}))
    expect(fetched.id).toBe(first.id)
    expect(await redis.lrange(keys.active, 0, -1)).toEqual([first.id])
    await fetched.moveToWait('token')
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([second.id, first.id])
  })

  it('score an ended job by the time of its end, and a delayed one by its due time in the bits above the twelfth', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    const ended = await queue.add('x', {})
    const fetched = await fetch(createWorker(async () => {}))
    await fetched.moveToCompleted(1, 'token', false)
    expect(await redis.zscore(keys.completed, ended.id ?? '')).toBe(`${fetched.finishedOn}`)
    const before = Date.now()
    const { id = '' } = await queue.add('x', {}, { delay: 5_000 })
    const due = Math.floor(Number(await redis.zscore(keys.delayed, id)) / DELAYED_SCORE_STEP)
    expect(due).toBeGreaterThanOrEqual(before + 5_000)
    expect(due).toBeLessThanOrEqual(Date.now() + 5_000)
  })

  it('keep every ended job if neither the job nor the worker says how many to remove', async () => {
    const { queue, redis, keys, startWorker } = await plainBullmq()
    await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'x', data: {} })))
    startWorker(async () => {}, { concurrency: 5 })
    await eventually(async () => (await redis.zcard(keys.completed)) === 20)
  })
})

describe('a failed child of a flow', () => {
  it('remains among the dependencies of its parent, which goes on when BullMQ removes the child', async () => {
    const { queue, redis, keys, options, createWorker, fetch, fields, events } = await plainBullmq()
    const flows = new FlowProducer(options)
    onTestFinished(() => flows.close())
    const node = { name: 'x', queueName: queue.name }
    const { job: parent, children: [child = expect.fail()] = [] } = await flows.add({ ...node, children: [node] })
    const [parentId = '', childKey] = [parent.id, keys.job(child.job.id ?? '')]
    const worker = createWorker(async () => {})
    const fail = async () => (await fetch(worker)).moveToFailed(new Error('no'), 'token', false)
    await fail()
    expect(await fields(child.job)).toMatchObject({ parentKey: keys.job(parentId) })
    expect(await redis.smembers(`${keys.job(parentId)}:dependencies`)).toEqual([childKey])
    expect(await redis.zrange(keys.waitingChildren, 0, '-1')).toEqual([parentId])
    await queue.add('y', {}, { removeOnFail: { count: 1 } })
    await fail()
    expect(await redis.exists(childKey, `${keys.job(parentId)}:dependencies`, keys.waitingChildren)).toBe(0)
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([parentId])
    expect(await events()).toContainEqual({ event: 'waiting', jobId: parentId, prev: 'waiting-children' })
  })
})

describe('a lock', () => {
  it('is the token of the fetch under the key of the job, and ends with the job', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    const { id = '' } = await queue.add('x', {})
    const fetched = await fetch(
      createWorker(async () => {}, { lockDuration: 60_000 }),
      'mine',
    )
    expect(await redis.get(keys.lock(id))).toBe('mine')
    expect(await redis.pttl(keys.lock(id))).toBeGreaterThan(50_000)
    await expect(fetched.moveToCompleted(1, 'theirs', false)).rejects.toMatchObject({ code: -6 })
    await fetched.moveToCompleted(1, 'mine', false)
    expect(await redis.exists(keys.lock(id))).toBe(0)
  })

  it('that is renewed takes the job out of the set `stalled`, and keeps its token', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    const { id = '' } = await queue.add('x', {})
    const worker = createWorker(async () => {}, { lockDuration: 10_000 })
    await fetch(worker, 'mine')
    const stalled = `${keys.base}stalled`
    await redis.sadd(stalled, id)
    await backendOf(worker).extendLocks([id], ['mine'], 60_000)
    expect(await redis.smembers(stalled)).toEqual([])
    expect(await redis.get(keys.lock(id))).toBe('mine')
    expect(await redis.pttl(keys.lock(id))).toBeGreaterThan(50_000)
  })

  it('that is missing in two stalled checks in a row returns the job to its queue, and counts it', async () => {
    const { queue, redis, keys, createWorker, fetch, fields } = await plainBullmq()
    const job = await queue.add('x', {})
    const worker = createWorker(async () => {}, { maxStalledCount: 1, stalledInterval: 1 })
    const backend = backendOf(worker)
    /** Two checks are at least the interval apart. */
    const check = async () => {
      await redis.del(`${keys.base}stalled-check`)
      return backend.moveStalledJobsToWait()
    }
    const lose = async () => {
      const lost = await fetch(worker)
      await redis.del(keys.lock(lost.id ?? ''))
      expect(await check()).toEqual([])
      expect(await check()).toEqual([job.id])
      return fields(job)
    }
    expect(await lose()).toMatchObject({ stc: '1' })
    expect(await redis.lrange(keys.wait, 0, -1)).toEqual([job.id])
    expect(await lose()).toMatchObject({ stc: '2', defa: 'job stalled more than allowable limit' })
    const fetched = await fetch(worker)
    expect(fetched.deferredFailure).toBe('job stalled more than allowable limit')
  })

  it('that was lost once too often fails the job without a call of the processor', async () => {
    const { queue, redis, keys, startWorker, hasEnded } = await plainBullmq()
    const job = await queue.add('x', {}, { attempts: 5 })
    await redis.hset(keys.job(job.id ?? ''), 'defa', 'too often')
    const processed: unknown[] = []
    startWorker(async ({ id }) => void processed.push(id))
    await hasEnded(job, 'failed')
    expect(processed).toEqual([])
    expect(await redis.hget(keys.job(job.id ?? ''), 'failedReason')).toBe('too often')
  })
})

describe("a queue's settings", () => {
  it('are paused and resumed by the field `paused`, the marker and an event', async () => {
    const { queue, redis, keys, createWorker, events } = await plainBullmq()
    await queue.add('x', {})
    expect(await redis.zrange(keys.marker, 0, '-1', 'WITHSCORES')).toEqual(['0', '0'])
    await queue.pause()
    expect(await redis.hget(keys.meta, 'paused')).toBe('1')
    expect(await redis.exists(keys.marker)).toBe(0)
    const worker = createWorker(async () => {})
    expect(await worker.getNextJob('token', { block: false })).toBeUndefined()
    await queue.resume()
    expect(await redis.hexists(keys.meta, 'paused')).toBe(0)
    expect(await redis.zrange(keys.marker, 0, '-1', 'WITHSCORES')).toEqual(['0', '0'])
    expect((await events()).map(({ event }) => event)).toEqual(['added', 'waiting', 'paused', 'resumed'])
  })

  it('limit how many jobs are active by the field `concurrency`', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    await queue.addBulk([1, 2].map((n) => ({ name: 'x', data: { n } })))
    await redis.hset(keys.meta, { concurrency: 1 })
    const worker = createWorker(async () => {})
    await fetch(worker)
    expect(await worker.getNextJob('token', { block: false })).toBeUndefined()
    await redis.hset(keys.meta, { concurrency: 2 })
    await fetch(worker)
  })

  it('limit starts by the fields `max` and `duration` and the counter `limiter`, which is not read without a rate', async () => {
    const { queue, redis, keys, createWorker, fetch } = await plainBullmq()
    await queue.addBulk([1, 2].map((n) => ({ name: 'x', data: { n } })))
    const worker = createWorker(async () => {})
    await redis.set(keys.limiter, `${Number.MAX_SAFE_INTEGER}`, 'PX', 60_000)
    await fetch(worker)
    await redis.hset(keys.meta, { max: Number.MAX_SAFE_INTEGER, duration: 1 })
    const [, , limited] = await backendOf(worker).moveToActive('token', 'w')
    expect(limited).toBeGreaterThan(50_000)
    await redis.del(keys.limiter)
    await redis.hset(keys.meta, { duration: 60_000 })
    await fetch(createWorker(async () => {}))
    expect(await redis.get(keys.limiter)).toBe('1')
  })

  it('wake a waiting worker by the marker 0 for a job that can start, and 1 for the next delayed one', async () => {
    const { queue, redis, keys } = await plainBullmq()
    const { id = '' } = await queue.add('x', {}, { delay: 60_000 })
    const due = Number(await redis.zscore(keys.delayed, id)) / DELAYED_SCORE_STEP
    expect(await redis.zrange(keys.marker, 0, '-1', 'WITHSCORES')).toEqual(['1', `${due}`])
  })
})

describe('the event stream', () => {
  it('names the event and the job of each end', async () => {
    const { queue, createWorker, fetch, events } = await plainBullmq()
    const worker = createWorker(async () => {})
    const [first, second] = [await queue.add('x', {}), await queue.add('x', {})]
    await (await fetch(worker)).moveToCompleted(1, 'token', false)
    await (await fetch(worker)).moveToFailed(new Error('said'), 'token', false)
    const ends = (await events()).filter(({ event }) => event === 'completed' || event === 'failed')
    expect(ends).toEqual([
      { event: 'completed', jobId: first.id, returnvalue: '1', prev: 'active' },
      { event: 'failed', jobId: second.id, failedReason: 'said', prev: 'active' },
    ])
  })
})

it('a Queue writes nothing to Redis by itself with skipMetasUpdate, and something without', async () => {
  const { queue, redis, keys, options } = await plainBullmq()
  await redis.del(keys.meta)
  const { Queue } = await import('bullmq')
  const silent = new Queue(queue.name, { ...options, skipMetasUpdate: true })
  await silent.waitUntilReady()
  await silent.getJobCounts()
  expect(await redis.exists(keys.meta)).toBe(0)
  const writing = new Queue(queue.name, options)
  onTestFinished(() => Promise.all([silent.close(), writing.close()]).then(() => {}))
  await eventually(async () => (await redis.exists(keys.meta)) === 1)
})
