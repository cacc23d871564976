// What job schedulers do on a team's own Queue and Worker is the same with Bullpen's scripts and in plain BullMQ.
import { randomUUID } from 'node:crypto'
import {
  createRedisBackend,
  type Job,
  type JobSchedulerTemplateOptions,
  Queue,
  type RepeatOptions,
  Worker,
} from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { repairIndex } from '../internals/status/index-repair.ts'
import { prefixOf, queueKeys } from '../keys.ts'
import { bullpenBackend } from './bullpen-backend.ts'
import { stateOf } from './queue-state.fixture.ts'

type Settings = Omit<RepeatOptions, 'key'>

const DAY = 86_400_000
const MINUTE = 60_000
/** BullMQ's scores: the time, with room for 4,096 jobs of the same millisecond. */
const SCORE = 0x1000

const YEARLY: Settings = { pattern: '0 0 1 1 *' }
const MONTHLY: Settings = { pattern: '0 0 1 * *' }
const DAILY: Settings = { every: DAY }
const OFFSET: Settings = { every: DAY, offset: 5 * MINUTE }

function stage(isBullpens: boolean) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  const keys = queueKeys(namespace, 'q')
  const options = { connection: redis, prefix: prefixOf(namespace, 'q') }
  const backend = isBullpens ? bullpenBackend() : createRedisBackend
  const queue = new Queue('q', options, backend)
  const workerOptions = { ...options, autorun: false, skipLockRenewal: true, name: 'w' }
  const worker = new Worker('q', async () => {}, workerOptions, backend)
  onTestFinished(async () => {
    await Promise.all([queue.close(), worker.close()])
    redis.disconnect()
  })
  /** Adds the scheduler `s`, or changes it. Returns its next job. */
  const upsert = async (settings: Settings, data?: unknown, opts?: JobSchedulerTemplateOptions): Promise<Job> =>
    (await queue.upsertJobScheduler('s', settings, { name: 'x', data, ...(opts && { opts }) })) ?? expect.fail()
  /** Starts a job, at which its scheduler adds the next one. */
  const fetch = async (): Promise<Job> => (await worker.getNextJob('token', { block: false })) ?? expect.fail()
  return {
    ...{ namespace, redis, keys, queue, worker, upsert, fetch },
    async complete(job: Job): Promise<void> {
      await job.moveToCompleted('done', 'token', false)
    },
    /** Promotes the next job. */
    async promote(): Promise<void> {
      for (const job of await queue.getDelayed()) await job.promote()
    },
  }
}

type Stage = ReturnType<typeof stage>

/** What Bullpen stores beyond BullMQ. */
const OWN = /:(totals|scheduled|retrying|dead|cancelled|expired|recently-removed)$/

const minutesSince = (start: number, time: number): number => Math.round((time - start) / MINUTE)

/**
 * Everything that Redis holds, with each time as the minutes since `start`, and the offset of a scheduler as the minutes since the time of
 * day. How long a job is delayed depends on when it was added.
 */
async function left(one: Stage, start: number): Promise<Record<string, unknown>> {
  const varying = (text: string): number => {
    if (text.includes('-')) return 0
    const time = Number(text) > 1e14 ? Number(text) / SCORE : Number(text)
    return minutesSince(start, time)
  }
  const state = await stateOf(one, { ignores: (key) => OWN.test(key), ignoredFields: ['delay'], varying })
  for (const [value] of Object.values(state) as [{ opts?: { delay?: unknown }; offset?: unknown }][]) {
    delete value.opts?.delay
    if (value.offset !== undefined) value.offset = minutesSince(start % DAY, Number(value.offset))
  }
  return state
}

/** What the call returns or throws. */
async function outcomeOf(call: Promise<unknown>, start: number): Promise<unknown> {
  try {
    const returned = await call
    return { returned: typeof returned === 'number' ? minutesSince(start, returned) : returned }
  } catch (error) {
    const { message, code } = error as Error & { readonly code?: unknown }
    return { message, code }
  }
}

type Scenario = (one: Stage) => Promise<unknown>

/** Expects the same outcome and the same data of both kinds of queue. Returns the outcome. */
async function expectSame(run: Scenario): Promise<unknown> {
  const start = Date.now()
  const results = []
  for (const isBullpens of [false, true]) {
    const one = stage(isBullpens)
    results.push({ outcome: await outcomeOf(run(one), start), left: await left(one, start) })
    if (!isBullpens) continue
    expect(await repairIndex(one.redis, one.keys)).toBe(0)
    const { accepted = 0, removed = 0 } = await one.redis.hgetall(one.keys.totals)
    const jobs = await one.queue.getJobCountByTypes()
    expect(jobs).toBe(Number(accepted) - Number(removed))
  }
  expect(results[1]).toEqual(results[0])
  return results[0]?.outcome
}

/** Returns for when the next job is planned. */
const planned = async (job: Promise<Job>): Promise<number> => Number((await job).id?.split(':').at(-1))

const OPTIONS: JobSchedulerTemplateOptions = {
  attempts: 3,
  backoff: { type: 'exponential', delay: 1_000 },
  keepLogs: 5,
  removeOnComplete: { count: 9 },
  stackTraceLimit: 2,
}

const ADDS: Readonly<Record<string, Scenario>> = {
  'with a pattern': ({ upsert }) => planned(upsert(YEARLY)),
  'with a pattern, a time zone, an end and a limit': ({ upsert }) =>
    planned(upsert({ ...YEARLY, tz: 'Asia/Tokyo', endDate: Date.now() + 1_000 * DAY, limit: 9 })),
  'with data and options': ({ upsert }) => planned(upsert(YEARLY, { a: [1, null, 'é'] }, OPTIONS)),
  'with an interval': ({ upsert }) => planned(upsert(DAILY)),
  'with an interval and an offset': ({ upsert }) => planned(upsert(OFFSET)),
  'with an interval and a start': ({ upsert }) => planned(upsert({ ...DAILY, startDate: Date.now() + 5 * DAY })),
  'with an interval and a start that is over': ({ upsert }) =>
    planned(upsert({ ...DAILY, startDate: Date.now() - 5 * DAY })),
  'whose jobs have a priority': ({ upsert }) => planned(upsert(DAILY, {}, { priority: 3 })),
  'whose jobs are delayed and have a priority': ({ upsert }) => planned(upsert(YEARLY, {}, { priority: 3 })),
  'whose jobs start before others': async ({ upsert, queue }) => {
    await queue.add('x', {}, { jobId: 'other' })
    return planned(upsert(DAILY, {}, { lifo: true }))
  },
  'in a paused queue': async ({ upsert, queue }) => {
    await queue.pause()
    return planned(upsert(DAILY))
  },
}

/** Adds the scheduler, lets something happen, and changes the scheduler. */
const changed =
  (
    first: Settings,
    then: Settings,
    between: Scenario = async () => {},
    opts: JobSchedulerTemplateOptions = {},
  ): Scenario =>
  async (one) => {
    await one.upsert(first, { n: 1 }, opts)
    await between(one)
    await one.redis.del(one.keys.marker)
    return planned(one.upsert(then, { n: 2 }, { ...opts, attempts: 7 }))
  }

/** The job that the scheduler has added starts. */
const started: Scenario = async ({ promote, fetch }) => {
  await promote()
  return fetch()
}

/** The job that the scheduler has added has ended, and its successor waits. */
const ended: Scenario = async (one) => {
  await one.promote()
  await one.complete(await one.fetch())
}

/** The time of the next job is that of a job that waits for no start, and the scheduler has no other. */
const taken: Scenario = async ({ promote, redis, keys }) => {
  await promote()
  const [id = ''] = await redis.lrange(keys.wait, 0, -1)
  await redis.lrem(keys.wait, 1, id)
  await redis.lpush(keys.active, id)
}

const CHANGES: Readonly<Record<string, Scenario>> = {
  'with a pattern that stays': changed(YEARLY, YEARLY),
  'with another pattern': changed(YEARLY, MONTHLY),
  'with a pattern that gets an interval': changed(YEARLY, DAILY),
  'with an interval that stays': changed(DAILY, DAILY),
  'with an interval that stays, whose next job is delayed': changed(OFFSET, OFFSET),
  'with another interval': changed(DAILY, { every: 2 * DAY }),
  'with an interval that gets a pattern': changed(DAILY, YEARLY),
  'whose next job has a priority': changed(DAILY, DAILY, undefined, { priority: 3 }),
  'whose next job is delayed and has options': changed(YEARLY, YEARLY, undefined, OPTIONS),
  'with an interval, whose job has started': changed(DAILY, DAILY, started),
  'with another interval, whose job has started': changed(OFFSET, { ...OFFSET, every: 2 * DAY }, started),
  'with an interval, whose job has ended': changed(DAILY, DAILY, ended),
  'with an interval, after its next job was removed': changed(DAILY, DAILY, async ({ redis, queue, keys }) => {
    const [job] = await queue.getWaiting()
    await redis.del(keys.repeat)
    await job?.remove()
  }),
  'with a pattern, while its next job is active': changed(YEARLY, YEARLY, taken),
  'with an interval, while its next job is active': changed(DAILY, DAILY, taken),
}

const STARTS: Readonly<Record<string, Scenario>> = {
  'with an interval': async (one) => {
    await one.upsert(DAILY, { n: 1 }, OPTIONS)
    return (await one.fetch()).name
  },
  'with an interval, twice': async (one) => {
    await one.upsert(DAILY)
    await one.complete(await one.fetch())
    await one.promote()
    await one.complete(await one.fetch())
  },
  'with an interval and an offset': async (one) => {
    await one.upsert(OFFSET)
    await one.promote()
    await one.fetch()
  },
  'with an interval, of which jobs were missed': async (one) => {
    const { id } = await one.upsert(DAILY)
    const old = Number(id?.split(':').at(-1)) - 10 * DAY
    await one.redis.rename(one.keys.job(id ?? ''), one.keys.job(`repeat:s:${old}`))
    await one.redis.del(one.keys.wait)
    await one.redis.lpush(one.keys.wait, `repeat:s:${old}`)
    await one.redis.zadd(one.keys.repeat, old, 's')
    await one.fetch()
  },
  'with a pattern': async (one) => {
    await one.upsert(YEARLY, { n: 1 }, { priority: 2 })
    await one.promote()
    await one.fetch()
  },
  'whose next job exists': async (one) => {
    const { id } = await one.upsert(DAILY)
    const next = `repeat:s:${Number(id?.split(':').at(-1)) + DAY}`
    await one.redis.hset(one.keys.job(next), { name: 'x', finishedOn: 1 })
    await one.redis.hincrby(one.keys.totals, 'accepted', 1)
    await one.redis.zadd(one.keys.completed, 1, next)
    await one.fetch()
  },
  'whose job starts twice': async (one) => {
    await one.upsert(OFFSET)
    await one.promote()
    await (await one.fetch()).moveToWait('token')
    await one.fetch()
  },
  'that is gone': async (one) => {
    await one.upsert(DAILY)
    await one.queue.removeJobScheduler('s')
    await one.fetch()
  },
}

const REMOVALS: Readonly<Record<string, Scenario>> = {
  'whose next job is delayed': async ({ upsert, queue }) => {
    await upsert(YEARLY)
    return String(await queue.removeJobScheduler('s'))
  },
  'whose next job waits': async ({ upsert, queue }) => {
    await upsert(DAILY)
    return String(await queue.removeJobScheduler('s'))
  },
  'whose job has started': async (one) => {
    await one.upsert(DAILY)
    await one.fetch()
    return String(await one.queue.removeJobScheduler('s'))
  },
  'that does not exist': async ({ queue }) => String(await queue.removeJobScheduler('s')),
}

describe('a job scheduler', () => {
  it.each(Object.entries(ADDS))('%s adds its first job as in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it.each(Object.entries(CHANGES))('%s changes as in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it.each(Object.entries(STARTS))('%s adds its next job as in BullMQ when one starts', async (_, scenario) => {
    await expectSame(scenario)
  })

  it.each(Object.entries(REMOVALS))('%s is removed as in BullMQ', async (_, scenario) => {
    await expectSame(scenario)
  })

  it('is refused with BullMQ’s code if its next job is active', async () => {
    const outcome = await expectSame(changed(YEARLY, YEARLY, taken))
    expect(outcome).toMatchObject({ code: -10 })
  })

  it.each([true, false])('with an interval looks for a free time, by Bullpen: %s', async (isBullpens) => {
    const one = stage(isBullpens)
    const { id } = await one.upsert(OFFSET)
    const first = Number(id?.split(':').at(-1))
    const ended = (count: number): Promise<unknown> =>
      Promise.all(
        Array.from({ length: count }, (_, i) =>
          one.redis.hset(one.keys.job(`repeat:s:${first + i * DAY}`), 'name', 'x'),
        ),
      )
    await one.queue.removeJobScheduler('s')
    await ended(3)
    expect(await planned(one.upsert(OFFSET))).toBe(first + 3 * DAY)
    await one.queue.removeJobScheduler('s')
    await ended(33)
    await expect(one.upsert(OFFSET)).rejects.toMatchObject({ code: -11 })
  })

  it('plans its next job for when it is due', async () => {
    const one = stage(true)
    const job = await one.upsert(OFFSET)
    const due = await planned(Promise.resolve(job))
    const { timestamp, delay, opts = '' } = await one.redis.hgetall(one.keys.job(job.id ?? ''))
    expect(Number(timestamp) + Number(delay)).toBe(due)
    expect(JSON.parse(opts)).toMatchObject({ delay: Number(delay), jobId: job.id })
    expect(Number(await one.redis.zscore(one.keys.scheduled, job.id ?? '')) / SCORE).toBe(due)
    expect(job.opts.delay).toBe(Number(delay))
  })

  it('whose next job waits in a paused queue replaces it, where BullMQ would add a second one', async () => {
    const one = stage(true)
    await one.queue.pause()
    await one.upsert(DAILY)
    await one.upsert(DAILY)
    expect(await one.redis.llen(one.keys.wait)).toBe(1)
    expect(await one.queue.getDelayedCount()).toBe(0)
  })

  it('with another pattern replaces a job that has ended, and no other one', async () => {
    const one = stage(true)
    const { redis, keys } = one
    await one.upsert(YEARLY)
    const next = await planned(one.upsert(MONTHLY))
    await one.upsert(YEARLY)
    const id = `repeat:s:${next}`
    await redis.hset(keys.job(id), { name: 'old', timestamp: 1, data: '', finishedOn: 2 })
    await redis.hincrby(keys.totals, 'accepted', 1)
    await redis.lpush(keys.active, id)
    const before = await left(one, 0)
    await expect(one.upsert(MONTHLY)).rejects.toMatchObject({ code: -10 })
    expect(await left(one, 0)).toEqual(before)
    await redis.lrem(keys.active, 1, id)
    await redis.zadd(keys.completed, 2, id)
    expect(await planned(one.upsert(MONTHLY))).toBe(next)
    expect(await redis.exists(keys.completed)).toBe(0)
    expect(await redis.hget(keys.job(id), 'name')).toBe('x')
    expect(await repairIndex(redis, keys)).toBe(0)
  })
})
