// Tests retries: the delays of any policy, and the budget that all tasks of a definition share.
import { randomBytes } from 'node:crypto'
import {
  type Backoff,
  defineCatalogue,
  defineHandler,
  defineTask,
  type RetryOptions,
  type TaskContext,
  TaskError,
  type TaskId,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { backoffMs, createRegistry, DEFAULT_TIMEOUTS, newTask } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { testPool } from '@bullpen/testkit/internal'
import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { amount } from '../../scale.ts'
import type { OpenBackend } from '../backend.ts'

const QUEUE = 'retries'

/** Another process writes the times, which are rounded. */
const ROUNDING_MS = 2

interface Start {
  readonly id: string
  readonly attempt: number
  readonly at: number
}

/** Opens a queue with one definition. `handle` gets the number of attempts that the task's input says are to fail. */
async function openRetries(
  open: OpenBackend,
  retry: RetryOptions,
  handle: (failures: number, context: TaskContext) => unknown,
) {
  const definition = defineTask({
    name: 'retries.try',
    queue: QUEUE,
    input: z.object({ failures: z.int() }),
    output: z.unknown(),
    retry,
  })
  const catalogue = defineCatalogue(definition)
  const clock = systemClock
  const backend = await open({ queues: [QUEUE], sizeLimit: 10_000, onExpired: () => {}, locks: 'usual', clock })
  const starts: Start[] = []
  const handler = defineHandler(definition, import.meta.url, (context) => {
    starts.push({ id: context.id, attempt: context.attempt, at: Date.now() })
    return handle(context.input.failures, context)
  })
  const registry = createRegistry(catalogue, { 'retries.try': handler } as never, { timeouts: DEFAULT_TIMEOUTS })
  const consumer = backend.consumer({ concurrency: 50, worker: 'test:1' })
  const settings = { clock, queue: QUEUE, concurrency: 50, worker: 'test:1', random: Math.random }
  const pool = testPool(backend.broker, registry, consumer, settings)
  onTestFinished(async () => {
    await pool.drain({ drainMs: 0, graceMs: 100 })
    await backend.close()
  })
  return {
    ...backend,
    definition,
    pool,
    starts,
    async enqueue(failures: number): Promise<TaskId> {
      const now = Date.now()
      const id = createTaskId(QUEUE, now, randomBytes(ID_RANDOM_BYTES))
      const origin = { id, enqueuedAt: now, correlationId: undefined }
      await backend.broker.enqueue(newTask(definition, { failures }, {}, origin))
      return id
    },
    async find(id: TaskId) {
      const record = await backend.broker.find(id)
      return record ?? expect.fail(`task ${id} not found`)
    },
    settled: (id: TaskId) => backend.broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
  }
}

const failFirst = (failures: number, { attempt }: TaskContext): unknown => {
  if (attempt <= failures) throw new TaskError('busy', 'try again')
  return attempt
}

/** The shortest delay after this attempt that the jitter allows. */
function shortestMs(attempt: number, backoff: Backoff): number {
  return backoffMs(attempt, backoff, () => 0)
}

const policies: fc.Arbitrary<RetryOptions> = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  backoff: fc
    .tuple(
      fc.constantFrom('exponential', 'linear', 'fixed', 'list'),
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom<0 | 0.2 | 1 | 'full'>(0, 0.2, 1, 'full'),
    )
    .map(([type, ms, jitter]) =>
      type === 'list'
        ? ({ type, delays: [`${ms}ms`, `${ms * 2}ms`], jitter } as const)
        : ({ type, initialDelay: `${ms}ms`, jitter } as const),
    ),
  budget: fc.oneof(
    fc.constant('none' as const),
    fc.record({ ratio: fc.constantFrom(0, 0.2, 1), minRetriesPerSecond: fc.constantFrom(1, 3, 20) }),
  ),
})

export function retryPolicies(open: OpenBackend): void {
  it('a retry beyond the budget waits in its queue, uses no attempt and no slot, and starts when another one succeeds', async () => {
    const mayEnd = Promise.withResolvers<void>()
    const budget = { ratio: 0, minRetriesPerSecond: 0.01 }
    const retry = { maxAttempts: 2, backoff: { type: 'fixed', initialDelay: '5ms' }, budget } as const
    const { broker, enqueue, find, pool, settled, starts } = await openRetries(open, retry, async (_, context) => {
      if (context.attempt === 1) throw new TaskError('busy', 'try again')
      await mayEnd.promise
    })
    const ids = await Promise.all([enqueue(1), enqueue(1), enqueue(1), enqueue(1)])
    await pool.start()
    const { held, records } = await eventually(async () => {
      const records = await Promise.all(ids.map(find))
      const running = records.filter(({ status }) => status === 'active')
      const held = records.filter(({ status }) => status === 'retrying')
      const inSlots = pool.slots().filter(({ task }) => task !== undefined)
      return running.length === 1 && inSlots.length === 1 && held.length === 3 && { held, records }
    })
    // Their slots begin 100 s after one another, counted from the end of the first attempt, whose task runs again.
    const slots = held.map(({ dueAt = 0 }) => dueAt).toSorted((a, b) => a - b)
    const [first = 0] = records.map(({ attempts }) => attempts[0]?.endedAt ?? 0).toSorted((a, b) => a - b)
    for (const [i, slot] of slots.entries()) expect(slot - first).toBeGreaterThanOrEqual(100_000 * (i + 1) - 5)
    expect(held.map(({ attemptsMade }) => attemptsMade)).toEqual([1, 1, 1])
    expect(await broker.heldRetries(QUEUE, ['retries.try', 'retries.other'])).toEqual([3, 0])
    mayEnd.resolve()
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 2 })
    expect(starts.at(-1)?.at).toBeLessThan(slots[0] ?? 0)
    expect(await broker.heldRetries(QUEUE, ['retries.try'])).toEqual([0])
  })

  it('a cancelled task no longer takes part in the budget', async () => {
    const mayEnd = Promise.withResolvers<void>()
    const budget = { ratio: 0, minRetriesPerSecond: 0.01 }
    const retry = { maxAttempts: 2, backoff: { type: 'fixed', initialDelay: '5ms' }, budget } as const
    const { broker, enqueue, find, pool, settled, starts } = await openRetries(open, retry, async (_, context) => {
      if (context.attempt === 1) throw new TaskError('busy', 'try again')
      await mayEnd.promise
    })
    const ids = await Promise.all([enqueue(1), enqueue(1), enqueue(1)])
    await pool.start()
    const held = await eventually(async () => {
      const retrying = (await Promise.all(ids.map(find))).filter(({ status }) => status === 'retrying')
      return starts.some(({ attempt }) => attempt === 2) && retrying.length === 2 && retrying
    })
    const [first, second] = held.toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0)).map(({ id }) => id)
    if (first === undefined || second === undefined) return expect.fail('no task is held')
    expect(await broker.cancel(first, { stoppable: true })).toBe('cancelled')
    // The retry that is running succeeds, and releases the second held task instead of the first.
    mayEnd.resolve()
    expect(await settled(second)).toMatchObject({ status: 'completed' })
    expect(await find(first)).toMatchObject({ status: 'cancelled' })
  })

  it('no task has more attempts, shorter delays or more retries than any policy allows', async () => {
    const failures = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 20, maxLength: 40 })
    const property = fc.asyncProperty(policies, failures, fc.nat(3), async (policy, planned, hopeless) => {
      const { definition, enqueue, pool, settled, starts } = await openRetries(open, policy, failFirst)
      const { backoff, budget, maxAttempts } = definition.retry
      // Few tasks never succeed, because each of their retries may be held.
      const plan = planned.map((count, i) => (i < hopeless ? maxAttempts : Math.min(count, maxAttempts - 1)))
      const began = Date.now()
      const ids = await Promise.all(plan.map(enqueue))
      await pool.start()
      const records = await Promise.all(ids.map(settled))
      const ends: number[] = []
      const successes: number[] = []
      for (const [i, record] of records.entries()) {
        const wanted = plan[i] ?? 0
        const made = Math.min(wanted + 1, maxAttempts)
        expect(record).toMatchObject({ attemptsMade: made, status: wanted < maxAttempts ? 'completed' : 'dead' })
        const own = starts.filter(({ id }) => id === record?.id)
        expect(own.map(({ attempt }) => attempt)).toEqual(Array.from({ length: made }, (_, n) => n + 1))
        for (const { attempt, endedAt, state } of record?.attempts ?? []) {
          ends.push(endedAt)
          if (state === 'DONE_SUCCESS' && attempt > 1) successes.push(endedAt)
          const next = own[attempt]
          if (next !== undefined) {
            expect(next.at - endedAt).toBeGreaterThanOrEqual(shortestMs(attempt, backoff) - ROUNDING_MS)
          }
        }
      }
      if (budget === undefined) return
      const { ratio, minRetriesPerSecond: rate } = budget
      const retries = starts.filter(({ attempt }) => attempt > 1)
      for (const [i, { at }] of retries.entries()) {
        const until = at + ROUNDING_MS
        const before = (times: readonly number[]) => times.filter((time) => time <= until).length
        const saved = Math.max(1, 10 * rate)
        const allowed = ratio * before(ends) + saved + (rate * (until - began)) / 1_000 + before(successes)
        expect(i).toBeLessThanOrEqual(allowed)
      }
    })
    await fc.assert(property, { numRuns: amount({ small: 4, full: 40 }), endOnFailure: true })
  }, 120_000)
}
