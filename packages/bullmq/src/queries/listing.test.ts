// Listings page by page: tasks with the same score, tasks that leave or arrive between two pages, and prioritized tasks.
import { randomUUID } from 'node:crypto'
import { privateRedis } from '@bullpen/testing'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { setup, short } from '../setup.fixture.ts'
import { type IdPage, listIds } from './listing.ts'

const QUERY = { queue: 'q', limit: 50, cursor: undefined } as const

/** A queue whose sets and lists a test fills itself. */
function bareQueue(redisUrl = inject('redisUrl')) {
  const redis = new Redis(redisUrl)
  const keys = queueKeys(`t-${randomUUID().slice(0, 12)}`, 'q')
  onTestFinished(async () => {
    await redis.del(keys.cancelled, keys.scheduled, keys.wait)
    redis.disconnect()
  })
  return { redis, keys }
}

/** Ids of different lengths and with bytes that a locale would order differently, and scores that many of them share. */
const scoredId = fc.record({
  id: fc.string({ unit: fc.constantFrom('0', '9', 'A', 'a', 'Z', 'z', '-', '_', 'é'), minLength: 1, maxLength: 3 }),
  score: fc.constantFrom(0, 1.5, 1_763_791_657_000, 8_999_999_999_999_999),
})

it.each(['cancelled', 'scheduled'] as const)(
  'pages of %s tasks list each task that stays once, though others leave, arrive and move between the pages',
  async (status) => {
    const { redis, keys } = bareQueue()
    const begin = fc.uniqueArray(scoredId, { selector: ({ id }) => id, minLength: 1, maxLength: 40 })
    const changes = fc.record({ shownLeave: fc.boolean(), touched: fc.array(scoredId, { maxLength: 5 }) })
    const program = fc.tuple(begin, fc.integer({ min: 1, max: 7 }), fc.infiniteStream(changes))
    await fc.assert(
      fc.asyncProperty(program, async ([tasks, limit, stream]) => {
        await redis.del(keys[status])
        for (const { id, score } of tasks) await redis.zadd(keys[status], score, id)
        const staying = new Set(tasks.map(({ id }) => id))
        const listed: string[] = []
        let page: IdPage | undefined
        do {
          const query = { ...QUERY, status, limit, cursor: page?.next } as const
          page = await listIds(redis, keys, query)
          listed.push(...page.ids)
          const { shownLeave, touched } = stream.next().value as { shownLeave: boolean; touched: typeof tasks }
          const leaving = shownLeave ? page.ids.slice(-1) : []
          for (const id of leaving) await redis.zrem(keys[status], id)
          for (const { id, score } of touched) await redis.zadd(keys[status], score, id)
          for (const id of [...leaving, ...touched.map((task) => task.id)]) staying.delete(id)
        } while (page.next !== undefined && listed.length < 200)
        const shown = listed.filter((id) => staying.has(id))
        // Ended tasks are listed from the newest to the oldest.
        const order = await redis.zrange(keys[status], '0', '-1')
        const listedOrder = status === 'cancelled' ? order.toReversed() : order
        expect(shown).toEqual(listedOrder.filter((id) => staying.has(id)))
      }),
      { numRuns: 100 },
    )
  },
)

it('pages of a list list each task that stays once, though tasks are taken, returned and added between the pages', async () => {
  const { redis, keys } = bareQueue()
  const changes = fc.record({
    taken: fc.integer({ min: 0, max: 3 }),
    returned: fc.integer({ min: 0, max: 2 }),
    added: fc.integer({ min: 0, max: 2 }),
  })
  const program = fc.tuple(
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 1, max: 7 }),
    fc.array(changes, { maxLength: 20 }),
  )
  await fc.assert(
    fc.asyncProperty(program, async ([length, limit, each]) => {
      const tasks = Array.from({ length }, (_, n) => `q-${n}`)
      await redis.del(keys.wait)
      await redis.lpush(keys.wait, ...tasks)
      const staying = new Set(tasks)
      const listed: string[] = []
      let page: IdPage | undefined
      let n = 0
      do {
        page = await listIds(redis, keys, { ...QUERY, status: 'waiting', limit, cursor: page?.next })
        listed.push(...page.ids)
        const { taken, returned, added } = each[n] ?? { taken: 0, returned: 0, added: 0 }
        for (let i = 0; i < taken; i++) staying.delete((await redis.rpop(keys.wait)) ?? '')
        for (let i = 0; i < returned; i++) await redis.rpush(keys.wait, `returned-${n}-${i}`)
        for (let i = 0; i < added; i++) await redis.lpush(keys.wait, `added-${n}-${i}`)
        n++
      } while (page.next !== undefined)
      expect(listed.filter((id) => staying.has(id))).toEqual(tasks.filter((id) => staying.has(id)))
    }),
    { numRuns: 100 },
  )
})

it.each(['cancelled', 'waiting'] as const)('a page of %s tasks costs Redis the same at any depth', async (status) => {
  const server = await privateRedis()
  await server.start()
  const { redis, keys } = bareQueue(server.url)
  const ids = Array.from({ length: 50_000 }, (_, n) => `q-${n.toString().padStart(8, '0')}`)
  await redis.lpush(keys.wait, ...ids)
  await redis.zadd(keys.cancelled, ...ids.flatMap((id) => [1_763_791_657_000, id]))
  /** The time that Redis spends on one page, in µs: the least of several, because another process may interrupt Redis. */
  const cost = async (cursor: string | undefined): Promise<number> => {
    const found: number[] = []
    for (let i = 0; i < 10; i++) {
      await redis.config('RESETSTAT')
      await listIds(redis, keys, { ...QUERY, status, cursor })
      const spent = [...(await redis.info('commandstats')).matchAll(/cmdstat_(?!config|info).*usec=(\d+)/g)]
      found.push(spent.reduce((sum, [, usec]) => sum + Number(usec), 0))
    }
    return Math.min(...found)
  }
  const first = await listIds(redis, keys, { ...QUERY, status })
  let last: IdPage = first
  for (let depth = 0; depth < 45_000; depth += 1_000) {
    last = await listIds(redis, keys, { ...QUERY, status, limit: 1_000, cursor: last.next })
  }
  // By position, a page at this depth would take many times as long as the second one.
  expect(await cost(last.next)).toBeLessThan(3 * (await cost(first.next)))
})

it('a prioritized task is counted and listed as waiting, after those in the waiting list', async () => {
  const { broker, enqueue } = await setup()
  const [queue] = broker.boardQueues.filter(({ name }) => name === 'rig')
  const waiting = [await enqueue(short), await enqueue(short)]
  await queue?.add('rig.short', {}, { jobId: 'rig-prioritized', priority: 5 })
  expect((await broker.counts('rig')).waiting).toBe(3)
  const query = { queue: 'rig', status: 'waiting', limit: 2 } as const
  const first = await broker.list({ ...query, cursor: undefined })
  expect(first.tasks.map(({ id }) => id)).toEqual(waiting)
  const second = await broker.list({ ...query, cursor: first.next })
  expect(second.tasks.map(({ id, status }) => ({ id, status }))).toEqual([{ id: 'rig-prioritized', status: 'waiting' }])
  expect(second.next).toBeUndefined()
  const whole = await broker.list({ ...query, limit: 10, cursor: undefined })
  expect(whole.tasks.map(({ id }) => id)).toEqual([...waiting, 'rig-prioritized'])
  expect(whole.next).toBeUndefined()
})
