// The recount of the sums under random operations on a real Redis: whatever happens between its pages, the sums are right afterwards.
import { randomUUID } from 'node:crypto'
import { amount, privateRedis } from '@bullpen/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRecount, recountBytes } from '../status/bytes-recount.ts'
import { OPERATIONS } from './operations.fixture.ts'
import { openWorld } from './world.fixture.ts'

const PROGRAMS = { small: 6, full: 100 }

/** The operations that do not add an event for each task that they move or change, so that a count may miss the task. */
const WITHOUT_EVENTS: ReadonlySet<string> = new Set([
  'change the priority of a task',
  'change the priority of a prioritized task',
  'change the data of a task',
  'clean a status',
  'remove orphaned jobs',
  'schedule jobs',
])

const names = Object.keys(OPERATIONS).filter((name) => !WITHOUT_EVENTS.has(name))
const number = fc.nat({ max: 9_999 })
const steps = (length: number) =>
  fc.array(
    fc.record({
      operation: fc.oneof(
        fc.constantFrom(...names),
        fc.constantFrom('enqueue a task that is counted for its API key', 'fetch a task', 'complete a task'),
      ),
      pick: number,
      n: number,
    }),
    { minLength: length, maxLength: length, size: 'max' },
  )

const program = fc.record({
  before: steps(60),
  between: steps(200),
  /** How many tasks a page reads, and how many operations are performed between two pages. */
  limit: fc.integer({ min: 1, max: 8 }),
  operationsPerPage: fc.integer({ min: 0, max: 3 }),
  errors: fc.record({
    bytes: fc.integer({ min: -2_000, max: 2_000 }),
    k0: fc.integer({ min: -3, max: 3 }),
    gone: fc.nat({ max: 3 }),
  }),
})

it('after a recount, the sums are right, whatever was added, moved, ended or deleted between its pages', {
  timeout: 1_200_000,
}, async () => {
  const server = await privateRedis()
  await server.start()
  let corrections = 0
  await fc.assert(
    fc.asyncProperty(program, async ({ before, between, limit, operationsPerPage, errors }) => {
      const world = await openWorld(server.url, `t-${randomUUID().slice(0, 12)}`, { leads: false })
      const { redis, keys } = world
      // BullMQ refuses some operations, for example because a job is locked.
      const perform = async ({ operation, pick, n }: (typeof before)[number]): Promise<void> => {
        await Promise.resolve(OPERATIONS[operation]?.(world, pick, n)).catch(() => {})
      }
      try {
        for (const each of before) await perform(each)
        await redis.hincrby(keys.totals, 'bytes', errors.bytes)
        await redis.hincrby(keys.apiKeyTasks, 'k0', errors.k0)
        await redis.hincrby(keys.apiKeyTasks, 'gone', errors.gone)
        const step = createRecount(redis, keys, limit)
        let corrected = await step()
        for (let i = 0; corrected === undefined; i += operationsPerPage) {
          for (const each of between.slice(i, i + operationsPerPage)) await perform(each)
          corrected = await step()
        }
        corrections += corrected
        // A count that takes a single page reads everything in one script.
        expect(await recountBytes(redis, keys, () => false)).toBe(0)
      } finally {
        await world.close()
      }
    }),
    { numRuns: amount(PROGRAMS), endOnFailure: true },
  )
  expect(corrections).toBeGreaterThan(0)
})
