// Each way to end a task that no worker is running does what BullMQ's own end does.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { FlowProducer, type JobsOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cancelById } from '../cancel/by-id.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { setup } from '../setup.fixture.ts'
import { bullpenBackend } from './bullpen-backend.ts'

async function stage() {
  const rig = await setup()
  const redis = new Redis(rig.redisUrl, { maxRetriesPerRequest: null })
  onTestFinished(() => redis.disconnect())
  const [queue = expect.fail()] = rig.broker.boardQueues
  const keys = queueKeys(rig.namespace, 'rig')
  const statuses = async (): Promise<string[]> => {
    const counts = Object.entries(await rig.broker.counts('rig'))
    return counts.flatMap(([status, count]) => (count === 0 ? [] : [`${count} ${status}`]))
  }
  return {
    ...rig,
    redis,
    queue,
    keys,
    statuses,
    add: async (options: JobsOptions = {}) => (await queue.add('x', {}, options)).id ?? '',
    /** The events of a task, and those of the whole queue. */
    async events(id: string): Promise<string[]> {
      const entries = await redis.xrange(keys.events, '-', '+')
      const events = entries.map(([, fields]) =>
        Object.fromEntries(fields.flatMap((_, i) => (i % 2 === 0 ? [fields.slice(i, i + 2)] : []))),
      )
      return events.flatMap(({ event, jobId, prev }) =>
        jobId === undefined || jobId === id ? [`${event} ${prev ?? ''}`.trim()] : [],
      )
    },
  }
}

type Stage = Awaited<ReturnType<typeof stage>>

const WAYS: readonly (readonly [name: string, status: string, end: (stage: Stage, id: string) => Promise<unknown>])[] =
  [
    [
      'a cancel by id',
      'cancelled',
      ({ redis, keys }, id) =>
        cancelById(redis, keys, {
          request: randomUUID(),
          id: id as TaskId,
          stoppable: true,
          now: Date.now(),
          by: '',
          process: 'test',
        }),
    ],
    [
      'a cancel by filter',
      'cancelled',
      async ({ broker, redis, keys }, id) => {
        await broker.cancelMany({ queue: 'rig', task: 'x', before: Date.now() + 1_000, reason: 'cancelled' })
        await eventually(() => redis.zscore(keys.failed, id))
      },
    ],
    [
      'expiry',
      'expired',
      async ({ redis, keys }, id) => {
        await redis.zadd(keys.expiries, 1, id)
        await eventually(() => redis.zscore(keys.failed, id))
      },
    ],
  ]

describe.each(WAYS)('%s', (_name, status, end) => {
  it.each([
    ['wait', 'waiting', {}],
    ['prioritized', 'waiting', { priority: 3 }],
    ['delayed', 'delayed', { delay: 3_600_000 }],
  ] as const)('ends a task in %s', async (_place, prev, options) => {
    const rig = await stage()
    const id = await rig.add({ attempts: 1, ...options })
    await end(rig, id)
    const job = await rig.redis.hgetall(rig.keys.job(id))
    expect(job).toMatchObject({ failedReason: expect.stringContaining('TERMINATED'), stacktrace: expect.anything() })
    expect(job).not.toHaveProperty('atm')
    expect(await rig.redis.zscore(rig.keys.failed, id)).toBe(job['finishedOn'])
    expect(await rig.statuses()).toEqual([`1 ${status}`])
    expect(await rig.redis.exists(rig.keys.active, rig.keys.expiries)).toBe(0)
    const events = (await rig.events(id)).slice(2)
    expect(events).toEqual([`failed ${prev}`, ...(prev === 'waiting' ? ['drained'] : [])])
  })

  it('does not report a queue that still has waiting tasks as drained', async () => {
    const rig = await stage()
    const id = await rig.add()
    await rig.queue.add('another', {})
    await end(rig, id)
    expect(await rig.events(id)).not.toContain('drained')
  })

  it('adds its event to a stream that keeps no events, because readers get events once the script has ended', async () => {
    const rig = await stage()
    const id = await rig.add()
    await rig.redis.hset(rig.keys.meta, 'opts.maxLenEvents', 0)
    await end(rig, id)
    expect((await rig.events(id)).slice(-2)).toEqual(['failed waiting', 'drained'])
  })

  it('lets the parent of a flow go on, as its options say', async () => {
    const rig = await stage()
    const options = { connection: rig.redis, prefix: prefixOf(rig.namespace, 'rig') }
    const flows = new FlowProducer(options, bullpenBackend())
    onTestFinished(() => flows.close())
    const { job: parent, children = [] } = await flows.add({
      name: 'parent',
      queueName: 'rig',
      children: [{ name: 'x', queueName: 'rig', opts: { ignoreDependencyOnFailure: true } }],
    })
    const id = children[0]?.job.id ?? ''
    expect(await parent.getState()).toBe('waiting-children')
    await end(rig, id)
    expect(await parent.getState()).toBe('waiting')
    expect(Object.values(await parent.getIgnoredChildrenFailures())).toEqual([expect.stringContaining('TERMINATED')])
    expect(await rig.statuses()).toEqual(['1 waiting', `1 ${status}`])
  })

  it('releases the deduplication id', async () => {
    const rig = await stage()
    const id = await rig.add({ deduplication: { id: 'once' } })
    expect(await rig.add({ deduplication: { id: 'once' } })).toBe(id)
    await end(rig, id)
    expect(await rig.add({ deduplication: { id: 'once' } })).not.toBe(id)
  })

  it('is counted in BullMQ’s metrics if the queue has any', async () => {
    const rig = await stage()
    const first = await rig.add()
    await end(rig, first)
    expect(await rig.queue.getMetrics('failed')).toMatchObject({ meta: { count: 0 } })
    await rig.redis.hset(rig.queue.toKey('metrics:completed'), { count: 1, prevTS: Date.now(), prevCount: 1 })
    const second = await rig.add()
    await end(rig, second)
    expect(await rig.queue.getMetrics('failed')).toMatchObject({ meta: { count: 1 } })
  })

  // An error message may have been cut off within an emoji. cjson does not decode the half that is left.
  it('ends a task whose last error contains half of a surrogate pair, and the tasks next to it', async () => {
    const rig = await stage()
    const ids = [await rig.add(), await rig.add(), await rig.add()] as const
    const stacks = ['Error: an emoji, cut off: \ud83d']
    await rig.redis.hset(rig.keys.job(ids[1]), 'stacktrace', JSON.stringify(stacks))
    for (const id of ids) await end(rig, id)
    expect(await rig.statuses()).toEqual([`3 ${status}`])
    const stored = JSON.parse((await rig.redis.hget(rig.keys.job(ids[1]), 'stacktrace')) ?? '') as string[]
    expect(stored).toEqual(['Error: an emoji, cut off: \ufffd', expect.stringContaining('TERMINATED')])
    expect(await rig.broker.totals('rig')).toMatchObject({ accepted: 3, removed: 0, drift: 0, unaccounted: 0 })
  })

  it('has a record that does not begin before the last one ended', async () => {
    const rig = await stage()
    const id = await rig.add()
    const later = Date.now() + 3_600_000
    const stacks = Array.from(
      { length: 10 },
      (_, i) => `{"attempt":1,"message":"number ${i}","endedAt":${later}}\n"endedAt":9`,
    )
    await rig.redis.hset(rig.keys.job(id), 'stacktrace', JSON.stringify(stacks), 'atm', 1)
    await end(rig, id)
    const job = await rig.redis.hgetall(rig.keys.job(id))
    const stored = JSON.parse(job['stacktrace'] ?? '') as string[]
    expect(stored).toHaveLength(10)
    expect(stored[0]).toContain('number 1')
    expect(JSON.parse(stored.at(-1)?.split('\n')[0] ?? '')).toMatchObject({
      attempt: 2,
      startedAt: later,
      endedAt: later,
    })
    expect(job).toMatchObject({ finishedOn: `${later}`, atm: '1' })
  })
})
