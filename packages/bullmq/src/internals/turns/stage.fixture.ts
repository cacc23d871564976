// A queue that takes turns, without a process that leads, for tests that start and end its tasks one by one.
import { randomBytes, randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { Worker } from 'bullmq'
import { expect, inject, onTestFinished } from 'vitest'
import { applySettingsScript } from '../../scripts/fleet/apply-settings.ts'
import { throttleKey } from '../../scripts/queue/throttle-key.ts'
import { runScript } from '../../scripts/script.ts'
import { backendFactory } from '../composition/backend.ts'
import { QUEUE, task } from '../index-model/worker.fixture.ts'
import { openWorld } from '../index-model/world.fixture.ts'
import { DELAYED_SCORE_STEP } from '../status/places.ts'
import { THROTTLE_MARK } from '../throttle.ts'
import { capacitySetting, keyLimitSettings } from './key-limits.ts'
import { laneViolations } from './lane-scan.fixture.ts'

export const NO_KEY = ''

export async function stage() {
  const world = await openWorld(inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`, { leads: false })
  onTestFinished(() => world.close())
  const { broker, redis, keys, queue, fetch, end } = world
  const names = new Map<string, string>()
  let enqueued = 0
  let commands = 0

  /** Adds a task. `key` is '' for a task without a concurrency key. */
  async function add(key: string, given: Partial<NewTask> & { weight?: number } = {}): Promise<TaskId> {
    const { weight = 1, ...others } = given
    const id = createTaskId(QUEUE, Date.now(), randomBytes(10))
    const origin = { id, enqueuedAt: Date.now(), correlationId: undefined }
    const turn = key === NO_KEY ? undefined : { key, weight }
    names.set(id, key === NO_KEY ? '-' : key)
    await broker.enqueue({ ...newTask(task, { n: enqueued++ }, {}, origin), turn, ...others })
    return id
  }
  const addSeveral = async (key: string, count: number, given = {}): Promise<TaskId[]> => {
    const ids: TaskId[] = []
    for (let i = 0; i < count; i++) ids.push(await add(key, given))
    return ids
  }

  /** Starts as many tasks as may start, at most `most`, and returns their ids in the order in which they have started. */
  async function startAll(most = 1_000): Promise<string[]> {
    const before = await redis.llen(keys.active)
    for (let i = 0; i < most; i++) if (!(await fetch('bullpen'))) break
    const started = await redis.lrange(keys.active, 0, -1 - before)
    return started.reverse()
  }
  /** Starts as many of the given tasks as may start, as a worker does that runs only these, and returns their ids. */
  async function startOnly(ids: readonly TaskId[]): Promise<string[]> {
    const candidates = { next: () => ids, fetched() {}, returned() {}, noneWaits: async () => true, stop() {} }
    const options = { connection: redis, prefix: queue.opts.prefix ?? '', autorun: false, skipStalledCheck: true }
    const worker = new Worker(queue.name, async () => {}, options, backendFactory({ now: Date.now, candidates }))
    onTestFinished(() => worker.close(true))
    const started: string[] = []
    for (;;) {
      const job = await worker.getNextJob('mine', { block: false })
      if (job === undefined) return started
      started.push(job.id ?? '')
    }
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
    setLimits(keyLimitSettings(limits, key))
  /** Sets the capacity of a limiter. 'none' removes it. */
  const setCapacity = (limiter: string, capacity: number | 'none'): Promise<void> =>
    setLimits(capacitySetting(limiter, capacity))
  async function setLimits(settings: readonly string[]): Promise<void> {
    const args = { base: keys.base, sequence: ++commands, mark: THROTTLE_MARK, scoreStep: DELAYED_SCORE_STEP }
    await runScript(redis, applySettingsScript, keys, args, settings)
  }
  /** Throttles the key of a task, and returns whether it takes turns. */
  const throttle = (id: string, duration: number): Promise<boolean> =>
    runScript(redis, throttleKey, { job: keys.job(id) }, { base: keys.base, duration })
  const violations = (): Promise<string[]> => laneViolations(redis, keys)
  return {
    ...{ ...world, add, addSeveral, start, startAll, startOnly, complete },
    ...{ limit, setCapacity, throttle, keysOf, violations },
  }
}
