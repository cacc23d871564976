// The status index and the totals under random operations on a real Redis: whatever moves, adds or removes a task, the counts and
// listings equal a scan of all keys, the conservation law holds, the number of ended tasks never falls, and there is nothing to repair.
import { randomUUID } from 'node:crypto'
import { amount, privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { laneViolations } from '../turns/lane-scan.fixture.ts'
import { violations } from './full-scan.fixture.ts'
import { OPERATIONS, RARE_OPERATIONS } from './operations.fixture.ts'
import { QUEUE } from './worker.fixture.ts'
import { openWorld, type World } from './world.fixture.ts'

const PROGRAMS = { small: 2, full: 50 }
const STEPS_PER_PROGRAM = 200
const STEPS_PER_CHECK = 5

const RESTART = 'restart Redis'
const ALL = { ...OPERATIONS, ...RARE_OPERATIONS }

interface Step {
  readonly operation: string
  readonly pick: number
  readonly n: number
}

const number = fc.nat({ max: 9_999 })
const step: fc.Arbitrary<Step> = fc.record({
  operation: fc.oneof(
    { weight: 400, arbitrary: fc.constantFrom(...Object.keys(OPERATIONS)) },
    // As often as all others together, since a task moves only when it is fetched and ended.
    { weight: 200, arbitrary: fc.constantFrom('enqueue a task', 'fetch a task', 'fetch a job with a plain worker') },
    { weight: 4, arbitrary: fc.constantFrom(...Object.keys(RARE_OPERATIONS)) },
    { weight: 1, arbitrary: fc.constant(RESTART) },
  ),
  pick: number,
  n: number,
})

it('the index, the totals and the listings agree with every key of the queue after random operations', {
  timeout: 1_200_000,
}, async () => {
  const server = await privateRedis()
  await server.start()
  const done = new Map<string, number>()

  const restart = async ({ broker, redis }: World): Promise<void> => {
    await server.crash()
    await server.start()
    await redis.ping()
    await eventually(() => broker.ping().then(() => true))
  }

  const run = async (steps: readonly Step[]): Promise<void> => {
    const world = await openWorld(server.url, `t-${randomUUID().slice(0, 12)}`)
    const { redis, keys, broker, delayedByPlain } = world
    let ended = 0
    try {
      for (const [i, { operation, pick, n }] of steps.entries()) {
        const perform = operation === RESTART ? restart : ALL[operation]
        // BullMQ refuses some operations, for example because a job is locked. A refused operation must change nothing.
        const result = await perform?.(world, pick, n).catch((error: unknown) => error)
        if (result !== false && !(result instanceof Error)) done.set(operation, (done.get(operation) ?? 0) + 1)
        if (i % STEPS_PER_CHECK !== 0 && i !== steps.length - 1) continue
        const found = [
          ...(await violations(redis, keys, broker, QUEUE, delayedByPlain)),
          ...(await laneViolations(redis, keys)),
        ]
        const before = ended
        ended = (await broker.totals(QUEUE)).ended
        if (ended < before) found.push(`${before} tasks had ended, now ${ended}`)
        if (found.length > 0) throw new Error(`after step ${i} (${operation}): ${found.join('; ')}`)
      }
    } finally {
      await world.close()
    }
  }

  const length = STEPS_PER_PROGRAM
  const programs = fc.array(step, { minLength: length, maxLength: length, size: 'max' })
  await fc.assert(fc.asyncProperty(programs, run), { numRuns: amount(PROGRAMS), endOnFailure: true })
  const never = [...Object.keys(ALL), RESTART].filter((operation) => !done.has(operation))
  if (amount({ small: 0, full: 1 }) === 1) expect(never).toEqual([])
})
