// Cancels by filter with live pools and a real Redis: which tasks start, which are left, and what is stored.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { type CancelFilter, matches } from '@bullpen/engine/internal'
import { amount, privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { long, setup, short } from '../setup.fixture.ts'

const all = (more: Partial<CancelFilter> = {}): CancelFilter => ({
  queue: 'rig',
  before: Date.now(),
  reason: 'cancelled',
  ...more,
})

type Setup = Awaited<ReturnType<typeof setup>>

function store({ redisUrl, namespace }: Setup) {
  const redis = new Redis(redisUrl)
  onTestFinished(() => redis.disconnect())
  return { redis, keys: queueKeys(namespace, 'rig') }
}

const isDone = ({ broker }: Setup, id: string) =>
  eventually(async () => (await broker.cancelProgress(id))?.doneAt !== undefined, 60_000)

/** Enqueues the tasks in this order, which is the order in which they wait. */
async function enqueueAll(
  { enqueue }: Setup,
  tasks: readonly (readonly [typeof short | typeof long, Partial<NewTask>?])[],
) {
  const ids: TaskId[] = []
  for (let at = 0; at < tasks.length; at += 100) {
    ids.push(...(await Promise.all(tasks.slice(at, at + 100).map(([task, given]) => enqueue(task, given)))))
  }
  return ids
}

describe('a cancel by filter', () => {
  it.each(['that is notified', 'whose subscriber connections are cut'])(
    'starts no matching task after the answer on a worker %s, and ends the waiting ones',
    async (how) => {
      const server = await privateRedis()
      await server.start()
      const count = amount({ small: 5_000, full: 20_000 })
      const begun: string[] = []
      const stage = await setup({
        redisUrl: server.url,
        concurrency: 4,
        handle: async ({ name, id, input }) => {
          if (String(name) === 'rig.short') begun.push(id)
          await sleep(5)
          return input
        },
      })
      const { broker, startPool, settled } = stage
      const { redis, keys } = store(stage)
      // Every seventh task is of another name, and runs.
      const ids = await enqueueAll(
        stage,
        Array.from({ length: count }, (_, i) => [i % 7 === 6 ? long : short]),
      )
      const covered = ids.filter((_, i) => i % 7 !== 6)
      await startPool()
      await startPool()
      await startPool()
      await eventually(() => begun.length > 100)
      const cut =
        how === 'that is notified' ? undefined : setInterval(() => redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub'), 5)
      onTestFinished(() => clearInterval(cut))
      const { id } = await broker.cancelMany(all({ task: 'rig.short' }))
      const begunByThen = begun.length
      clearInterval(cut)
      expect(begunByThen).toBeLessThan(covered.length)
      const later = await stage.enqueue(short, { input: { n: 7 } })
      await isDone(stage, id)
      expect((await settled(later))?.output).toEqual({ n: 7 })
      expect(begun.length - 1).toBe(begunByThen)
      const failed = await redis.zcard(keys.failed)
      expect(failed + begunByThen).toBe(covered.length)
      expect(await broker.cancelProgress(id)).toMatchObject({ ended: failed })
      for (const other of ids.filter((_, i) => i % 7 === 6).slice(-20)) {
        expect(await settled(other)).toMatchObject({ status: 'completed' })
      }
      expect(await redis.exists(keys.cancelRules)).toBe(0)
    },
    90_000,
  )

  it('stores for each task what a cancel by id stores', async () => {
    const stage = await setup()
    const { broker } = stage
    const { redis, keys } = store(stage)
    const kinds = [{}, { delayMs: 3_600_000 }, { expiresAt: Date.now() + 3_600_000 }]
    const single = await enqueueAll(
      stage,
      kinds.map((given) => [long, given]),
    )
    const filtered = await enqueueAll(
      stage,
      kinds.map((given) => [short, given]),
    )
    for (const id of single) await broker.cancel(id, { stoppable: true, by: 'ann' })
    const { id } = await broker.cancelMany(all({ task: 'rig.short', by: 'ann' }))
    await isDone(stage, id)
    const seen = async (task: TaskId) => {
      const job = await redis.hgetall(keys.job(task))
      const anonymous = (text = '') => text.replaceAll(/\d{13}/g, 'TIME').replaceAll(/\\"worker\\":\\"[^"]+"/g, '')
      return {
        // Only the long tasks have events.
        fields: Object.keys(job)
          .filter((field) => field !== 'events')
          .toSorted(),
        reason: job['failedReason'],
        stacks: anonymous(job['stacktrace']),
        score: (await redis.zscore(keys.failed, task)) === job['finishedOn'],
        expires: await redis.zscore(keys.expiries, task),
        elsewhere: [await redis.lpos(keys.wait, task as string), await redis.zscore(keys.delayed, task)],
      }
    }
    for (const [i, task] of filtered.entries()) expect(await seen(task)).toEqual(await seen(single[i] as TaskId))
    const events = (await redis.xrange(keys.events, '-', '+'))
      .map(([, fields]) => fields)
      .filter((fields) => fields.includes('failed'))
    expect(events).toHaveLength(6)
    const [of1, of2] = [single, filtered].map((ids) =>
      events
        .filter((fields) => ids.includes(fields[fields.indexOf('jobId') + 1] as TaskId))
        .map((fields) => fields.filter((text) => !ids.includes(text as TaskId))),
    )
    // The filter ends the tasks place by place.
    expect(of1?.toSorted()).toEqual(of2?.toSorted())
  })

  it('ends exactly the tasks that the engine’s `matches` says, whatever a task contains', async () => {
    const stage = await setup()
    const { broker } = stage
    const { redis, keys } = store(stage)
    const before = Date.now() - 10_000
    const tag = fc.constantFrom('a', 'b', 'a.b', 'A:/@-_9', 'aa', 'x'.repeat(64))
    const tasks = fc.sample(
      fc.record({
        definition: fc.constantFrom(short, long),
        tags: fc.uniqueArray(tag, { maxLength: 3 }),
        input: fc.constantFrom<unknown>({ n: 1 }, { tags: ['a'] }, '"tags":["a"]', undefined, [',"tags":["a"]']),
        enqueuedAt: fc.constantFrom(before - 1, before, before + 1),
        delayMs: fc.constantFrom(undefined, 3_600_000),
      }),
      300,
    )
    const rules = fc.sample(
      fc.record({
        task: fc.constantFrom(undefined, 'rig.short', 'rig.long', 'rig'),
        tag: fc.option(tag, { nil: undefined }),
        before: fc.constantFrom(before - 1, before),
      }),
      4,
    )
    const filters = rules.filter((rule) => rule.task !== undefined || rule.tag !== undefined).map((rule) => all(rule))
    const ids = await enqueueAll(
      stage,
      tasks.map(({ definition, ...given }) => [definition, given]),
    )
    const cancels = await Promise.all(filters.map((filter) => broker.cancelMany(filter)))
    const expected = ids.filter((_, i) => {
      const { definition, tags = [], enqueuedAt = 0 } = tasks[i] ?? { definition: short }
      return filters.some((filter) => matches(filter, { task: definition.name, tags, enqueuedAt }))
    })
    const records = await Promise.all(ids.map((id) => broker.find(id)))
    expect(records.flatMap((task) => (task?.status === 'cancelled' ? [task.id] : []))).toEqual(expected)
    for (const { id } of cancels) await isDone(stage, id)
    expect((await redis.zrange(keys.failed, '0', '-1')).toSorted()).toEqual(expected.toSorted())
  })

  it('misses no task while others are added to the list, taken from it and removed from its middle', async () => {
    const stage = await setup()
    const { broker, enqueue } = stage
    const { redis, keys } = store(stage)
    const ids = await enqueueAll(
      stage,
      Array.from({ length: 3_000 }, (_, i) => [i % 3 === 0 ? short : long]),
    )
    const { id } = await broker.cancelMany(all({ task: 'rig.short' }))
    // Until the bulk canceller has finished: cancels by id anywhere in the list, and new tasks.
    const others = ids.filter((_, i) => i % 3 !== 0)
    let isOver = false
    const disturbed = (async () => {
      for (let i = 0; !isOver && i < others.length; i++) {
        await broker.cancel(others[(i * 997) % others.length] as TaskId, { stoppable: true })
        await enqueue(long)
      }
    })()
    await isDone(stage, id)
    isOver = true
    await disturbed
    const left = new Set(await redis.lrange(keys.wait, 0, -1))
    expect(ids.filter((each, i) => i % 3 === 0 && left.has(each))).toEqual([])
    expect(await broker.cancelProgress(id)).toMatchObject({ ended: 1_000 })
    expect(left.has('bullpen:cancelled')).toBe(false)
  })
})
