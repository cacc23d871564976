// Tests which permits a queue and a task accept, and how many tasks of a definition may run at once.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../catalogue.ts'
import { defineQueue } from '../queue.ts'
import { defineTask } from '../task-definition.ts'
import type { SharedPermits } from './permits.ts'

type Given = Readonly<Record<string, number | SharedPermits>>

const queueWith = (permits: Given) => defineQueue({ name: 'data', limits: { permits } })
const taskWith = (options: { permits?: unknown; concurrency?: unknown }, permits: Given = { db: 3, gpu: 1 }) =>
  defineTask({ name: 'data.load', queue: queueWith(permits), input: z.object({}), ...(options as object) })

test('a queue has its own permits, or a share of those of several queues', () => {
  expect(queueWith({ db: 10, 'gpu-1': { total: 8, share: 0.5 } })).toMatchObject({
    permits: { db: 10, 'gpu-1': 4 },
    limits: undefined,
    fairness: undefined,
  })
  expect(queueWith({}).permits).toBeUndefined()
  expect(defineQueue({ name: 'data' }).permits).toBeUndefined()
})

test.each([
  [10, 0.3, 3],
  [10, 0.7, 7],
  [10, 1 / 3, 3],
  [100, 0.29, 29],
  [7, 0.5, 3],
  [1, 1, 1],
])('a share of %d permits and %d is %d, rounded down', (total, share, count) => {
  expect(queueWith({ db: { total, share } }).permits).toEqual({ db: count })
})

test.each([
  ['much', 'limits.permits is "much"; expected an object such as { db: 10 }'],
  [{ DB: 1 }, 'limits.permits has the invalid name "DB"; expected a lower-case letter'],
  [{ 'db=1,': 1 }, 'limits.permits has the invalid name "db=1,"'],
  [{ db: 0 }, 'limits.permits.db is 0; expected a whole number from 1 to 1000000'],
  [{ db: 1.5 }, 'limits.permits.db is 1.5; expected a whole number'],
  [{ db: { total: 10 } }, 'limits.permits.db.share is undefined; expected a number above 0 and at most 1, such as 0.3'],
  [{ db: { total: 10, share: 2 } }, 'limits.permits.db.share is 2'],
  [{ db: { share: 0.5 } }, 'limits.permits.db.total is undefined; expected a whole number'],
  [{ db: { total: 2, share: 0.3 } }, 'gives the queue less than one permit: 0.3 of 2; raise its share'],
  [{ db: { total: 2, shares: 1 } }, 'limits.permits.db.shares is not a setting; expected total and share'],
  [Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`p${n}`, 1])), 'has 33 names; expected at most 32'],
])('permits %j of a queue are refused: %s', (given, message) => {
  expect(() => queueWith(given as Given)).toThrow(message)
})

test('a task definition has the permits that its tasks need, and its concurrency', () => {
  expect(taskWith({ permits: { db: 3, gpu: 1 }, concurrency: 5 })).toMatchObject({
    permits: { db: 3, gpu: 1 },
    concurrency: 5,
  })
  expect(taskWith({})).toMatchObject({ permits: {}, concurrency: undefined })
})

test.each([
  [{ permits: 'db' }, 'permits is "db"; expected an object such as { db: 1 }'],
  [{ permits: { bd: 1 } }, "permits.bd is not in limits.permits of queue 'data', which has only the permits db, gpu"],
  [{ permits: { db: 0 } }, 'permits.db is 0; expected a whole number from 1 to 1000000'],
  [{ permits: { db: 4 } }, "permits.db is 4, but queue 'data' has only 3; the task could never start"],
  [{ concurrency: 0 }, 'concurrency is 0; expected a whole number from 1 to 1000000'],
])('a task with %j is refused: %s', (given, message) => {
  expect(() => taskWith(given)).toThrow(message)
})

test('a task of a queue without permits needs none', () => {
  expect(() => taskWith({ permits: { db: 1 } }, {})).toThrow("limits.permits of queue 'data', which has no permits")
})

test('a catalogue refuses two definitions of a queue with different permits', () => {
  const one = taskWith({})
  const other = defineTask({ name: 'data.look', queue: queueWith({ db: 5 }), input: z.object({}) })
  expect(() => defineCatalogue(one, other)).toThrow("permits of queue 'data' is")
})
