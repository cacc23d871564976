// Tasks that a worker had no place for keep their turn.
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueKeys } from '../keys.ts'
import { long, setup } from '../setup.fixture.ts'

/** Tasks whose handlers run until the test ends them. */
async function stage() {
  const starts: number[] = []
  const gate = Promise.withResolvers<void>()
  const all = await setup({
    concurrency: 1,
    roundMs: 50,
    handle: async ({ input }) => {
      starts.push(input.n)
      if (input.n === 0) await gate.promise
      return input
    },
  })
  const redis = new Redis(all.redisUrl)
  onTestFinished(() => redis.disconnect())
  return { ...all, starts, open: () => gate.resolve(), redis, keys: queueKeys(all.namespace, 'rig') }
}

describe('a promotion', () => {
  it.each([0, 5])('of a task without a place puts it before the tasks of its priority %i', async (priority) => {
    const { enqueue, startPool, starts, open, redis, keys, settled } = await stage()
    const ids = []
    for (const n of [0, 1, 2, 3]) ids.push(await enqueue(long, { input: { n }, priority }))
    const [, , , last = ''] = ids
    // As a worker leaves a task that it has no place for.
    await (priority === 0 ? redis.lrem(keys.wait, 1, last) : redis.zrem(`${keys.base}prioritized`, last))
    await redis.hset(keys.job(last), 'waits', 1)
    await redis.zadd(keys.delayed, 4_096, last)
    await redis.zadd(keys.scheduled, 4_096, last)
    await startPool()
    await eventually(() => starts.length > 0)
    open()
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed' })
    expect(starts).toEqual([3, 0, 1, 2])
    expect(await redis.hexists(keys.job(last), 'waits')).toBe(0)
  })
})
