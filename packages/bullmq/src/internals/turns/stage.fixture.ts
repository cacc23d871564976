// A fair queue, without a process that leads, for tests that start and end its tasks one by one.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { expect, inject, onTestFinished } from 'vitest'
import { runScript } from '../../scripts/script.ts'
import { throttleKeyScript } from '../../store/scripts.ts'
import { modelTask } from '../index-model/model-task.fixture.ts'
import { openWorld } from '../index-model/world.fixture.ts'
import { capacitySetting, keyLimitSettings } from './key-limits.ts'
import { laneViolations } from './lane-scan.fixture.ts'
import { setLimits } from './set-limits.fixture.ts'

export const NO_KEY = ''

export async function stage({ redisUrl = inject('redisUrl') } = {}) {
  const world = await openWorld(redisUrl, `t-${randomUUID().slice(0, 12)}`, { leads: false })
  onTestFinished(() => world.close())
  const { broker, redis, keys, held, fetch, fetchOneOf, end } = world
  const names = new Map<string, string>()
  let enqueued = 0

  /** Adds a task. `key` is '' for a task without a concurrency key. */
  async function add(key: string, given: Partial<NewTask> & { weight?: number } = {}): Promise<TaskId> {
    const { weight = 1, ...others } = given
    const turn = key === NO_KEY ? undefined : { key, weight }
    const added = modelTask(enqueued++, { turn, ...others })
    names.set(added.id, key === NO_KEY ? '-' : key)
    await broker.enqueue(added)
    return added.id
  }
  const addSeveral = async (key: string, count: number, given = {}): Promise<TaskId[]> => {
    const ids: TaskId[] = []
    for (let i = 0; i < count; i++) ids.push(await add(key, given))
    return ids
  }

  /**
   * Starts as many tasks as may start, at most `most`, and returns their ids in the order in which they have started.
   */
  async function startAll(most = 1_000): Promise<string[]> {
    const before = await redis.llen(keys.active)
    for (let i = 0; i < most; i++) if (!(await fetch('bullpen'))) break
    const started = await redis.lrange(keys.active, 0, -1 - before)
    return started.reverse()
  }
  /** Starts as many of the given tasks as may start, as a worker does that runs only these, and returns their ids. */
  async function startOnly(ids: readonly TaskId[]): Promise<string[]> {
    const before = held.length
    while (await fetchOneOf(ids));
    return held.slice(before).map(({ job }) => job.id ?? '')
  }
  /** Starts `count` tasks. */
  async function start(count: number): Promise<string[]> {
    const started = await startAll(count)
    expect(started).toHaveLength(count)
    return started
  }
  const keysOf = (ids: readonly string[]): string => ids.map((id) => names.get(id)).join(' ')

  /** Ends the oldest attempt. If the worker continues, it fetches the next task with the end. */
  const complete = ({ fetches = false } = {}): Promise<boolean> =>
    end(
      fetches ? 0 : 1,
      () => ({ kind: 'completed', output: {} }),
      async () => undefined,
    )

  /** Sets limits of a key or, without one, of every key. 'none' removes a limit. */
  const limit = (limits: Parameters<typeof keyLimitSettings>[0], key?: string): Promise<void> =>
    setLimits(redis, keys, keyLimitSettings(limits, key))
  /** Sets the capacity of a limiter. 'none' removes it. */
  const setCapacity = (limiter: string, capacity: number | 'none'): Promise<void> =>
    setLimits(redis, keys, capacitySetting(limiter, capacity))
  /** Throttles the key of a task, and returns whether it takes turns. */
  const throttle = async (id: string, duration: number): Promise<boolean> =>
    (await runScript(redis, throttleKeyScript, { job: keys.job(id) }, { base: keys.base, duration })) === 1
  const violations = (): Promise<string[]> => laneViolations(redis, keys)
  return {
    ...{ ...world, add, addSeveral, start, startAll, startOnly, complete },
    ...{ limit, setCapacity, throttle, keysOf, violations },
  }
}
