// Tasks that a worker had no place for keep their turn.
import type { TaskStatus } from '@bullpen/contract'
import type { Verdict } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ModelVerdict } from '../internals/index-model/world.fixture.ts'
import { NO_KEY, stage as ofLanes } from '../internals/turns/stage.fixture.ts'
import { queueKeys } from '../keys.ts'
import { long, setup } from '../setup.fixture.ts'

const RETRIED: Verdict = { kind: 'retrying', delayMs: 0 }
const SNOOZED: Verdict = { kind: 'snoozed', delayMs: 0 }

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

const STAYS: readonly (readonly [name: string, before: readonly Verdict[], status: TaskStatus])[] = [
  ['has not failed', [], 'scheduled'],
  ['is to be retried', [RETRIED], 'retrying'],
  ['was snoozed after an attempt that had failed', [RETRIED, SNOOZED], 'scheduled'],
]

it.each(STAYS)('a task without a place that %s keeps its status', async (_, before, status) => {
  const { add, start, end, broker } = await ofLanes()
  const id = await add(NO_KEY)
  const endAs = (verdict: ModelVerdict) =>
    end(
      1,
      () => verdict,
      async () => undefined,
    )
  for (const verdict of [...before, 'postponed' as const]) {
    await start(1)
    await endAs(verdict)
  }
  expect((await broker.find(id))?.status).toBe(status)
})

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
