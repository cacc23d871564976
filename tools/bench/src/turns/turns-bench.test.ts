// Runs the benchmark of turns at small scale.
import { privateRedis } from '@bullpen/testing'
import { expect, inject, it } from 'vitest'
import { COSTS } from '../measuring/task-costs.ts'
import { benchLaneMemory, type LaneMemory } from './lane-memory.ts'
import { measureSide } from './turns-bench.ts'
import { TURNS, type Turns } from './workload.ts'

it.each(Object.keys(TURNS) as Turns[])('a side whose keys %s measures every cost of its tasks', async (what) => {
  const costs = await measureSide(inject('redisUrl'), { what, keys: 8, tasks: 40 })
  expect(Object.keys(costs)).toEqual(COSTS)
  for (const [cost, value] of Object.entries(costs)) expect(value, cost).toBeGreaterThan(0)
})

it('the memory is measured without keys, with several tasks of each key, and with one task of each key', async () => {
  const redis = await privateRedis()
  await redis.start()
  const found: LaneMemory[] = []
  for await (const each of benchLaneMemory({ redisUrl: redis.url, keys: 10, tasks: 300 })) found.push(each)
  expect(found.map(({ keys }) => keys)).toEqual([0, 10, 10, 300, 0, 10, 10, 300])
  expect(found.map(({ turns }) => turns)).toEqual([false, false, true, true, false, false, true, true])
  // With so few tasks, the growth of Redis's own tables hides what they take.
  for (const { bytesPerTask } of found) expect(bytesPerTask).toBeGreaterThan(0)
  for (const plain of [found[0], found[4]]) expect(plain?.ratio).toBe(1)
})
