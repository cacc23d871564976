// The in-memory broker as a model of the queue in Redis: both do the same random operations, start the same tasks in the
// same order, and have the same tasks in each status after each step.
//
// The tasks have random keys, weights, priorities and needs. Limits and permits change while tasks wait and run. Rates
// and throttles last for an hour, so that no result depends on the time that an operation takes. In the end, nothing
// limits the tasks, and all of them start in the same order.
import { randomUUID } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import type { Need, NewTask } from '@bullpen/engine'
import { definitionLimiter, permitsLimiter, type Verdict } from '@bullpen/engine/internal'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { expect, inject, it } from 'vitest'
import { HOUR, type Lockstep, lockstep } from './lockstep.fixture.ts'
import { programsOf, type Step } from './random-steps.fixture.ts'

const PROGRAMS = { small: 3, full: 200 }
const STEPS = { small: 80, full: 300 }

interface World extends Lockstep {
  /** The tasks that have lost a worker. BullMQ does not start a task again that has lost several. */
  readonly lost: Set<TaskId>
}

type Operation = (world: World, pick: number, n: number) => Promise<unknown>

const KEYS = [undefined, 'a', 'b', 'c', 'd']
const WEIGHTS = [1, 3, 0.5]
const PERMITS = ['db', 'gpu'] as const
const need = (name: (typeof PERMITS)[number], of: number): Need => ({ limiter: permitsLimiter(name), amount: of })
const CAPPED = 'model.capped'
const CAP: Need = { limiter: definitionLimiter(CAPPED), amount: 1 }
/** Many tasks need nothing. One script looks at 32 lanes at most, so there are fewer. */
const NEEDS: readonly (readonly Need[] | undefined)[] = [
  ...[undefined, undefined, undefined, undefined],
  ...[[CAP], [CAP, need('db', 1)]],
  ...[[need('db', 1)], [need('db', 3)], [need('gpu', 1)], [need('db', 2), need('gpu', 1)]],
]
const REQUEUED: Verdict = { kind: 'requeued', throttleMs: undefined }

const add: Operation = (world, pick, n) => {
  const key = KEYS[n % KEYS.length]
  const turn = key === undefined ? undefined : { key, weight: WEIGHTS[pick % 3] ?? 1 }
  const needs = NEEDS[Math.floor(pick / 16) % NEEDS.length]
  return world.add({ turn, needs, priority: pick % 4 === 0 ? 1 + (n % 2) : 0 })
}

const end =
  (verdict: Verdict): Operation =>
  async (world, pick) =>
    world.running() > 0 && world.end(pick, verdict)

const throttle: Operation = async (world, pick) => {
  // Without a key, the whole queue would be throttled.
  if (world.runningAt(pick)?.turn === undefined) return
  await world.end(pick, { kind: 'requeued', throttleMs: HOUR, throttled: 'concurrencyKey' })
}

const lose: Operation = async (world, pick) => {
  const found = world.runningAt(pick)
  if (found === undefined || world.lost.has(found.id)) return
  world.lost.add(found.id)
  await world.lose(pick)
}

/** Sets or removes a limit of all keys or of one key. The next fetch looks at the lanes that wait for a time. */
const limit: Operation = async (world, pick, n) => {
  const key = pick % 3 === 0 ? undefined : KEYS[1 + (n % 4)]
  const concurrency = n % 3 === 0 ? 'none' : key === undefined ? 1 + (n % 3) : n % 4
  const rate = n % 3 === 0 ? ('none' as const) : { max: 1, perMs: HOUR, burst: 1 + (n % 4) }
  await world.limit(pick % 2 === 0 ? { concurrency } : { rate }, key)
  await world.fetch()
}

/** Sets or removes the permits of a resource. */
const limitPermits: Operation = async (world, pick, n) => {
  await world.limitPermits(PERMITS[pick % 2] ?? 'db', n % 5 === 0 ? 'none' : n % 5)
  await world.fetch()
}

/** Sets or removes the concurrency of a definition. */
const limitDefinition: Operation = async (world, _, n) => {
  await world.limitDefinition(CAPPED, n % 4 === 0 ? 'none' : n % 4)
  await world.fetch()
}

/** Longer than what the clock of the in-memory broker moves. */
const DAYS = 48 * HOUR
const CONFLICTS = ['keep', 'replace', 'extend', 'error'] as const

/** Adds a task that may be refused, or that another task may stand for. */
const addOnConditions: Operation = async (world, pick, n) => {
  const delayMs = pick % 5 === 0 ? DAYS : undefined
  const unique = {
    key: `u${n % 2}`,
    until: n % 3 === 0 ? ('started' as const) : ('finished' as const),
    onConflict: CONFLICTS[pick % CONFLICTS.length] ?? 'keep',
    maxDelayMs: undefined,
  }
  const idempotency = { key: `${n % 7}`.padStart(22, 'k'), request: `${pick % 2}`.padStart(11, 'r'), life: 86_400 }
  const conditions: readonly Partial<NewTask>[] = [
    { unique },
    { unique, delayMs: unique.onConflict === 'extend' ? DAYS + n : delayMs },
    { idempotency },
    { limits: { maxTasks: 6 } },
    { apiKeyName: `k${n % 2}`, limits: { perApiKey: { maxUnfinishedTasks: 3 } } },
    { delayMs: DAYS },
  ]
  await world.add({ ...(n % 2 === 0 && { turn: { key: 'a', weight: 1 } }), ...conditions[n % conditions.length] })
}

/** Some requests are sent again. */
const retryDead: Operation = async (world, pick, n) => {
  const id = world.addedAt(pick)
  if (id !== undefined) await world.both((broker) => broker.retry(id, { request: `r${n % 40}`, by: 'ann' }))
}

const deleteDead: Operation = async (world, pick) => {
  const id = world.addedAt(pick)
  if (id !== undefined) await world.both((broker) => broker.deleteDead(id))
}

const cancel: Operation = async (world, pick) => {
  const id = world.addedAt(pick)
  if (id !== undefined) await world.cancel(id)
}

const OPERATIONS: Readonly<Record<string, readonly [weight: number, Operation]>> = {
  add: [12, add],
  fetch: [10, (world) => world.fetch()],
  complete: [6, end({ kind: 'completed', output: {} })],
  requeue: [2, end(REQUEUED)],
  snooze: [1, end({ kind: 'snoozed', delayMs: 24 * HOUR })],
  kill: [1, end({ kind: 'dead' })],
  throttle: [1, throttle],
  'lose a worker': [1, lose],
  'retry later': [1, end({ kind: 'retrying', delayMs: DAYS })],
  expire: [1, end({ kind: 'expired' })],
  'add on conditions': [4, addOnConditions],
  'retry a dead task': [3, retryDead],
  'delete a dead task': [1, deleteDead],
  cancel: [1, cancel],
  limit: [2, limit],
  'limit permits': [2, limitPermits],
  'limit a definition': [1, limitDefinition],
}

async function run(world: World, steps: readonly Step[]): Promise<void> {
  for (const [i, { name, pick, n }] of steps.entries()) {
    try {
      await OPERATIONS[name]?.[1](world, pick, n)
      await world.compare()
    } catch (cause) {
      throw new Error(`step ${i} (${name}) has failed`, { cause })
    }
  }
  await world.unlimit()
  for (;;) {
    if ((await world.fetch()) > 0) continue
    if (world.running() === 0) break
    await world.end(1, { kind: 'completed', output: {} })
  }
  const [inRedis, inMemory] = await world.counts()
  expect(inRedis).toEqual(inMemory)
  expect(inMemory).toMatchObject({ waiting: 0, active: 0 })
}

it('the in-memory broker starts the same tasks in the same order as Redis, and has them in the same statuses', {
  timeout: 1_200_000,
}, async () => {
  const property = async (steps: readonly Step[]): Promise<void> => {
    const world = await lockstep(inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`)
    try {
      await run({ ...world, lost: new Set() }, steps)
    } finally {
      await world.close()
    }
  }
  await fc.assert(fc.asyncProperty(programsOf(OPERATIONS, STEPS), property), {
    numRuns: amount(PROGRAMS),
    endOnFailure: true,
  })
})
