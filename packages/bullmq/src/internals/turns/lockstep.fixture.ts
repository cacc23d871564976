// Does the same in Redis and in the in-memory broker, one step after the other, and compares which tasks start, and the statuses of all.
import { BullpenError, type TaskId } from '@bullpen/contract'
import type { Broker, NewTask } from '@bullpen/engine'
import {
  type AttemptResult,
  type ConsumerHost,
  definitionLimiter,
  permitsLimiter,
  type Verdict,
} from '@bullpen/engine/internal'
import { type ConcurrencyKeyLimitChange, fakeClock, memoryBroker } from '@bullpen/testkit'
import type { Job } from 'bullmq'
import { expect } from 'vitest'
import { modelTask } from '../index-model/model-task.fixture.ts'
import { QUEUE, task } from '../index-model/worker.fixture.ts'
import { openWorld, resultOf } from '../index-model/world.fixture.ts'
import { capacitySetting, keyLimitSettings } from './key-limits.ts'
import { setLimits } from './set-limits.fixture.ts'

/** How long rates and throttles last, in ms: longer than any test. */
export const HOUR = 3_600_000

/**
 * After this time, a lost task waits again in memory, in ms. It is so short that the limits do not change their
 * results.
 */
const STALL_MS = 1

/** A task that runs in both. `end` ends its attempt in memory. */
interface Running {
  readonly id: TaskId
  readonly end: (result: AttemptResult) => void
}

export async function lockstep(redisUrl: string, namespace: string) {
  const world = await openWorld(redisUrl, namespace, { leads: false, retention: {} })
  const { redis, keys, broker } = world
  const clock = fakeClock()
  const memory = memoryBroker({ clock, stallMs: STALL_MS })
  const added = new Map<TaskId, NewTask>()
  /** In the order of their starts, as in the world. */
  const running: Running[] = []
  const startedInMemory: Running[] = []
  /** The keys that have had limits of their own. */
  const limited = new Set<string>()
  const permits = new Set<string>()
  const capped = new Set<string>()

  const host: Partial<ConsumerHost> = { settled() {}, released() {}, lockLost() {} }
  const consumer = memory.consumer({ queue: QUEUE, concurrency: 0 })(async ({ id }, commit) => {
    const { promise, resolve } = Promise.withResolvers<AttemptResult>()
    startedInMemory.push({ id, end: resolve })
    return commit(await promise)
  }, host as ConsumerHost)
  await consumer.open()
  void consumer.run()

  /** Expects the same tasks to have started in both since the last call, and returns how many. */
  const started = async (): Promise<number> => {
    await new Promise((resolve) => setImmediate(resolve))
    const known = new Set<string>(running.map(({ id }) => id))
    const inRedis = (await redis.lrange(keys.active, 0, -1)).filter((id) => !known.has(id))
    const inMemory = startedInMemory.splice(0)
    running.push(...inMemory)
    // Nothing more starts in memory until the next step.
    consumer.resize(running.length)
    expect(inRedis, 'what has started in Redis, and in memory').toEqual(inMemory.map(({ id }) => id))
    return inMemory.length
  }

  /**
   * Takes the running task at `pick`, as the world does. In memory, its slot starts the next task only if `continues`
   * is true.
   */
  const take = (pick: number, continues: boolean): Running => {
    const [taken] = running.splice(pick % running.length, 1)
    if (taken === undefined) throw new Error('no task is running')
    consumer.resize(running.length + (continues ? 1 : 0))
    return taken
  }

  const limit = async (limits: ConcurrencyKeyLimitChange, key?: string): Promise<void> => {
    if (key !== undefined) limited.add(key)
    await setLimits(redis, keys, keyLimitSettings(limits, key))
    memory.limitKeys(QUEUE, limits, key)
  }
  const limitPermits = async (name: string, count: number | 'none'): Promise<void> => {
    permits.add(name)
    await setLimits(redis, keys, capacitySetting(permitsLimiter(name), count))
    memory.limitPermits(QUEUE, { [name]: count })
  }

  const limitDefinition = async (name: string, concurrency: number | 'none'): Promise<void> => {
    capped.add(name)
    await setLimits(redis, keys, capacitySetting(definitionLimiter(name), concurrency))
    memory.limitDefinition(QUEUE, name, concurrency)
  }

  /** Calls both, and expects the same result, or an error with the same code. */
  const both = async (call: (each: Broker) => Promise<unknown>): Promise<unknown> => {
    const [inRedis, inMemory] = await Promise.all([broker, memory].map((each) => call(each).catch(codeOf)))
    expect(inRedis, 'the result in Redis, and in memory').toEqual(inMemory)
    return inRedis
  }

  return {
    running: (): number => running.length,
    both,
    /** Returns the running task that `end` and `lose` take. */
    runningAt: (pick: number): NewTask | undefined => {
      const id = running[pick % Math.max(1, running.length)]?.id
      return id && added.get(id)
    },
    addedAt: (pick: number): TaskId | undefined => [...added.keys()][pick % Math.max(1, added.size)],
    async add(given: Partial<NewTask>): Promise<void> {
      const fresh = modelTask(0, given)
      added.set(fresh.id, fresh)
      await both(async (each) => {
        const { id, action } = await each.enqueue(fresh)
        return { id, action }
      })
    },
    /** Expects each task to have the same status in both, or to exist in neither. */
    async compare(): Promise<void> {
      const statusesIn = (each: Broker) =>
        Promise.all([...added.keys()].map(async (id) => `${id} ${(await each.find(id))?.status}`))
      expect(await statusesIn(broker), 'the statuses in Redis, and in memory').toEqual(await statusesIn(memory))
    },
    /** Starts a task, if one may start. */
    async fetch(): Promise<number> {
      await world.fetch('bullpen')
      consumer.resize(running.length + 1)
      return started()
    },
    /** Ends an attempt with this verdict. If `pick` is even, both fetch the next task with it. */
    async end(pick: number, verdict: Verdict): Promise<number> {
      const { id, end } = take(pick, pick % 2 === 0)
      let result: AttemptResult | undefined
      const decide = (job: Job): Verdict => {
        result = resultOf(job, verdict)
        return verdict
      }
      await world.end(pick, decide, async () => undefined)
      if (result?.event.id !== id) throw new Error(`${result?.event.id} has ended instead of ${id}`)
      end(result)
      return started()
    },
    /** Loses the worker of a task, which returns to the head of its lane, whatever its priority. */
    async lose(pick: number): Promise<number> {
      const { id, end } = take(pick, false)
      await world.lose(pick)
      memory.loseLock(id)
      await clock.advance(STALL_MS)
      const job = { id, name: task.name, attemptsStarted: 1, attemptsMade: 0 }
      end(resultOf(job, { kind: 'lost' }))
      return started()
    },
    limit,
    limitPermits,
    limitDefinition,
    /** Removes all limits and throttles. */
    async unlimit(): Promise<void> {
      await redis.del(keys.keyThrottles)
      await clock.advance(2 * HOUR)
      for (const key of [undefined, ...limited]) await limit({ concurrency: 'none', rate: 'none' }, key)
      for (const name of permits) await limitPermits(name, 'none')
      for (const name of capped) await limitDefinition(name, 'none')
    },
    /** Cancels a task if it waits. Expects both to do so. */
    async cancel(id: TaskId): Promise<void> {
      const options = { stoppable: false }
      const [inRedis, inMemory] = [await broker.cancel(id, options), await memory.cancel(id, options)]
      expect(inRedis).toBe(inMemory)
    },
    counts: () => Promise.all([broker.counts(QUEUE), memory.counts(QUEUE)]),
    async close(): Promise<void> {
      consumer.close()
      await memory.close()
      await world.close()
    },
  }
}

function codeOf(error: unknown): string {
  if (error instanceof BullpenError) return error.code
  throw error
}

export type Lockstep = Awaited<ReturnType<typeof lockstep>>
