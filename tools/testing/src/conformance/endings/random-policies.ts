// Tests that every delay and every number of attempts is within random retry policies and within what each call makes of them.
//
// Each task has retry settings of its own: those of its definition, or its call's within the definition's bounds. The test computes
// the allowed delays from the settings and compares them with the delays that the pool decided and with the times at which the
// attempts started.
import { randomBytes } from 'node:crypto'
import {
  type BackoffOptions,
  type CallBackoff,
  type CallOptions,
  type Duration,
  defineCatalogue,
  defineHandler,
  defineTask,
  type Handlers,
  type RetryOptions,
  TaskError,
  type TaskEvent,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { createRegistry, DEFAULT_TIMEOUTS, newTask } from '@bullpen/engine/internal'
import { systemClock } from '@bullpen/engine/node'
import { testPool } from '@bullpen/testkit/internal'
import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { amount } from '../../scale.ts'
import type { OpenBackend } from '../backend.ts'

const QUEUE = 'policies'
const MOST_ATTEMPTS = 5
const SHORTEST_MS = 2
const LONGEST_MS = 60
/** Another process writes the times, which are rounded. */
const ROUNDING_MS = 2

/** The delays of a policy, as numbers. */
interface Delays {
  readonly type: 'exponential' | 'linear' | 'fixed' | 'list'
  readonly initialMs: number
  readonly maxMs: number
  readonly factor: number
  readonly listMs: readonly number[]
  readonly jitter: number | 'full'
}

interface Policy {
  readonly maxAttempts: number
  readonly delays: Delays
}

interface Plan {
  /** How many attempts fail before one succeeds. */
  readonly failures: number
  readonly override: Partial<Policy>
  readonly retryAfterMs: number | undefined
  readonly totalMs: number | undefined
}

const oneDelay = fc.integer({ min: SHORTEST_MS, max: LONGEST_MS })

const delays: fc.Arbitrary<Delays> = fc
  .record({
    type: fc.constantFrom('exponential', 'linear', 'fixed', 'list'),
    ends: fc.tuple(oneDelay, oneDelay),
    factor: fc.constantFrom(1, 1.5, 2, 10),
    listMs: fc.array(oneDelay, { minLength: 1, maxLength: 3 }),
    jitter: fc.constantFrom<number | 'full'>(0, 0.2, 0.7, 1, 'full'),
  })
  .map(({ ends: [one, other], ...rest }) => ({ ...rest, initialMs: Math.min(one, other), maxMs: Math.max(one, other) }))

const policy: fc.Arbitrary<Policy> = fc.record({ maxAttempts: fc.integer({ min: 1, max: MOST_ATTEMPTS }), delays })

const plan: fc.Arbitrary<Plan> = fc.record({
  failures: fc.integer({ min: 0, max: MOST_ATTEMPTS }),
  override: fc.oneof(
    fc.constant({}),
    fc.record({ maxAttempts: fc.integer({ min: 1, max: MOST_ATTEMPTS }), delays }, { requiredKeys: [] }),
  ),
  retryAfterMs: sometimes({ min: 1, max: 2 * LONGEST_MS }),
  totalMs: sometimes({ min: 20, max: 300 }),
})

function sometimes(range: { readonly min: number; readonly max: number }): fc.Arbitrary<number | undefined> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.integer(range) })
}

function asDuration(ms: number): Duration {
  return `${ms}ms`
}

function optionsOf({ type, initialMs, maxMs, factor, listMs, jitter }: Delays): BackoffOptions & CallBackoff {
  const initialDelay = asDuration(initialMs)
  switch (type) {
    case 'exponential':
      return { type, initialDelay, maxDelay: asDuration(maxMs), factor, jitter }
    case 'linear':
      return { type, initialDelay, maxDelay: asDuration(maxMs), jitter }
    case 'fixed':
      return { type, initialDelay, jitter }
    case 'list':
      return { type, delays: listMs.map(asDuration), jitter }
  }
}

function retryOf({ maxAttempts, delays }: Policy): RetryOptions {
  const callBounds = {
    maxAttempts: MOST_ATTEMPTS,
    minDelay: asDuration(SHORTEST_MS),
    maxDelay: asDuration(LONGEST_MS),
    totalTimeout: '1s',
  } as const
  return { maxAttempts, backoff: optionsOf(delays), budget: 'none', callBounds }
}

function callOf({ override: { maxAttempts, delays }, totalMs }: Plan): CallOptions {
  return {
    retry: {
      ...(maxAttempts !== undefined && { maxAttempts }),
      ...(delays !== undefined && { backoff: optionsOf(delays) }),
    },
    ...(totalMs !== undefined && { totalTimeout: asDuration(totalMs) }),
  }
}

/** Returns the shortest and the longest delay that is allowed after this attempt, in ms. */
function allowedDelay(attempt: number, { type, initialMs, maxMs, factor, listMs, jitter }: Delays, retryAfterMs = 0) {
  const unvaried = {
    exponential: Math.min(maxMs, initialMs * factor ** (attempt - 1)),
    linear: Math.min(maxMs, initialMs * attempt),
    fixed: initialMs,
    list: listMs[attempt - 1] ?? listMs.at(-1) ?? 0,
  }[type]
  const [least, most] = jitter === 'full' ? [0, 1] : [1 - jitter, 1 + jitter]
  return {
    shortest: Math.max(1, Math.floor(unvaried * least), retryAfterMs),
    longest: Math.max(1, Math.ceil(unvaried * most), retryAfterMs),
  }
}

/** Runs one task for each plan, each list of plans with a definition of its own, and returns what became of them. */
async function runPlans(open: OpenBackend, cases: readonly (readonly [Policy, readonly Plan[]])[]) {
  const clock = systemClock
  const input = z.object({ failures: z.int(), retryAfterMs: z.int().optional() })
  const definitions = cases.map(([each], i) =>
    defineTask({ name: `policies.case-${i}`, queue: QUEUE, input, output: z.unknown(), retry: retryOf(each) }),
  )
  const [first, ...others] = definitions
  if (first === undefined) return []
  const backend = await open({ queues: [QUEUE], sizeLimit: 10_000, onExpired: () => {}, locks: 'usual', clock })
  const starts = new Map<string, { readonly attempt: number; readonly at: number }[]>()
  const delayed = new Map<string, number | undefined>()
  const sink = (event: TaskEvent): void => {
    if (event.event === 'attempt.ended') delayed.set(`${event.id} ${event.attempt}`, event.delayMs)
  }
  const catalogue = defineCatalogue(first, ...others)
  const handlers = definitions.map((definition) => [
    definition.name,
    defineHandler(definition, import.meta.url, ({ id, attempt, input: { failures, retryAfterMs } }) => {
      starts.set(id, [...(starts.get(id) ?? []), { attempt, at: Date.now() }])
      if (attempt > failures) return attempt
      throw new TaskError(
        'busy',
        'try again',
        retryAfterMs === undefined ? {} : { retryAfter: asDuration(retryAfterMs) },
      )
    }),
  ])
  const registry = createRegistry(catalogue, Object.fromEntries(handlers) as Handlers<typeof catalogue>, {
    timeouts: DEFAULT_TIMEOUTS,
  })
  const consumer = backend.consumer({ concurrency: 50, worker: 'test:1' })
  const settings = { clock, queue: QUEUE, concurrency: 50, worker: 'test:1', random: Math.random, sink }
  const pool = testPool(backend.broker, registry, consumer, settings)
  const close = async (): Promise<void> => {
    await pool.drain({ drainMs: 0, graceMs: 100 })
    await backend.close()
  }
  onTestFinished(close)
  await pool.start()
  const tasks = cases.flatMap(([each, plans], i) =>
    plans.map(async (one) => {
      const enqueuedAt = Date.now()
      const id: TaskId = createTaskId(QUEUE, enqueuedAt, randomBytes(ID_RANDOM_BYTES))
      const { failures, retryAfterMs } = one
      const origin = { id, enqueuedAt, correlationId: undefined }
      await backend.broker.enqueue(newTask(definitions[i] ?? first, { failures, retryAfterMs }, callOf(one), origin))
      const record = await backend.broker.waitUntilFinished(id, AbortSignal.timeout(120_000))
      return { id, plan: one, policy: { ...each, ...one.override }, enqueuedAt, record }
    }),
  )
  const ended = await Promise.all(tasks)
  return ended.map(({ id, record, ...rest }) => ({
    ...rest,
    record: record ?? expect.fail(`task ${id} has not ended`),
    starts: starts.get(id) ?? [],
    delayAfter: (attempt: number) => delayed.get(`${id} ${attempt}`),
  }))
}

type Ended = Awaited<ReturnType<typeof runPlans>>[number]

function checkDelays({ plan: { retryAfterMs }, policy, record, starts, delayAfter }: Ended): void {
  for (const { attempt, at } of starts.slice(1)) {
    const { shortest, longest } = allowedDelay(attempt - 1, policy.delays, retryAfterMs)
    const decided = delayAfter(attempt - 1) ?? expect.fail(`attempt ${attempt - 1} has not ended with a delay`)
    expect(decided).toBeGreaterThanOrEqual(shortest)
    expect(decided).toBeLessThanOrEqual(longest)
    const endedAt = record.attempts.find((each) => each.attempt === attempt - 1)?.endedAt ?? 0
    expect(at - endedAt).toBeGreaterThanOrEqual(decided - ROUNDING_MS)
  }
}

function checkAttempts({ plan: { failures, retryAfterMs, totalMs }, policy, enqueuedAt, record, starts }: Ended): void {
  const { maxAttempts, delays } = policy
  expect(record.maxAttempts).toBe(maxAttempts)
  expect(record.attemptsMade).toBeLessThanOrEqual(maxAttempts)
  expect(record.attemptsMade).toBe(record.attempts.filter(({ counted }) => counted).length)
  const ran = starts.map(({ attempt }) => attempt)
  expect(ran).toEqual(Array.from({ length: ran.length }, (_, n) => n + 1))
  const wanted = Math.min(failures + 1, maxAttempts)
  const usedAll = failures < maxAttempts ? 'completed' : 'dead'
  if (totalMs === undefined || ran.length === wanted) {
    expect([ran.length, record.status]).toEqual([wanted, usedAll])
    return
  }
  // The total timeout has expired, or would have expired before the next attempt.
  const totalAt = enqueuedAt + totalMs
  for (const { startedAt, attempt } of record.attempts) {
    if (ran.includes(attempt)) expect(startedAt).toBeLessThanOrEqual(totalAt)
  }
  expect(record.status).toBe(ran.length === 0 ? 'expired' : 'dead')
  expect(endOf(record) + allowedDelay(Math.max(1, ran.length), delays, retryAfterMs).longest).toBeGreaterThanOrEqual(
    totalAt - ROUNDING_MS,
  )
}

function endOf({ attempts, endedAt = 0 }: TaskRecord): number {
  return attempts.at(-1)?.endedAt ?? endedAt
}

export function randomPolicies(open: OpenBackend): void {
  it('each task gets the attempts and the delays of its policy, or of its call within the bounds of the policy', async () => {
    const cases = fc.array(fc.tuple(policy, fc.array(plan, { minLength: 1, maxLength: 12 })), {
      minLength: 1,
      maxLength: 10,
    })
    const property = fc.asyncProperty(cases, async (given) => {
      for (const ended of await runPlans(open, given)) {
        checkDelays(ended)
        checkAttempts(ended)
      }
    })
    await fc.assert(property, { numRuns: amount({ small: 3, full: 60 }), endOnFailure: true })
  }, 120_000)
}
