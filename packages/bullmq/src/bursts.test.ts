// A pool that stops taking tasks while it fetches several at once from a distant Redis: the tasks that arrive return to their queue.
import type { Pool } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import { queueKeys } from './keys.ts'
import { setup, short } from './setup.fixture.ts'

const TASKS = 20
const ONE_WAY_MS = 100

/** A pool of which one task has started, and which is fetching more. */
async function burst() {
  const proxy = await faultProxy(inject('redisUrl'))
  const redis = new Redis(inject('redisUrl'))
  onTestFinished(async () => {
    redis.disconnect()
    await proxy.close()
  })
  const first = Promise.withResolvers<void>()
  const all = await setup({
    concurrency: TASKS,
    handle: ({ input }) => {
      first.resolve()
      return input
    },
  })
  const pool = await all.startPool(proxy.url)
  proxy.delay(ONE_WAY_MS)
  const ids = await Promise.all(Array.from({ length: TASKS }, () => all.enqueue(short)))
  await first.promise
  // The next fetches are sent at the end of this turn.
  await new Promise(setImmediate)
  const keys = queueKeys(all.namespace, 'rig')
  return {
    ...{ pool, ids },
    find: all.broker.find,
    settled: all.settled,
    places: () => Promise.all([redis.llen(keys.wait), redis.llen(keys.active), redis.zcard(keys.completed)]),
  }
}

it.each<[string, (pool: Pool) => void, (pool: Pool) => void]>([
  ['paused', (pool) => pool.pause(), (pool) => pool.resume()],
  ['resized to one slot', (pool) => pool.resize(1), () => {}],
])('a pool that is %s meanwhile runs every task once, as if it had not fetched it before', async (_, stop, goOn) => {
  const { pool, ids, places, settled, find } = await burst()
  stop(pool)
  if (pool.size() > 1) {
    await eventually(async () => (await places())[1] === 0)
    const [waiting, , completed] = await places()
    expect([waiting > 0, waiting + completed]).toEqual([true, TASKS])
  }
  goOn(pool)
  for (const id of ids) await settled(id)
  const found = await Promise.all(ids.map(find))
  expect(found.map((task) => [task?.status, task?.fencingToken])).toEqual(ids.map(() => ['completed', 1]))
})

it('a pool that is drained meanwhile leaves no task active', async () => {
  const { pool, places } = await burst()
  const report = await pool.drain({ drainMs: 60_000, graceMs: 1_000, hurry: new AbortController().signal })
  expect(report).toMatchObject({ abandoned: [], unconfirmed: [] })
  const [waiting, active, completed] = await places()
  expect([active, waiting + completed]).toEqual([0, TASKS])
})
