// Tests when a bulk call over Redis takes room in a queue for whose room other callers of the process are waiting.
import { defineCatalogue, defineQueue, defineTask, type Enqueued, QueueFullError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { createBlockedCallers } from '@bullpen/engine/internal'
import { fakeClock } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { bulkPreparer } from './bulk.ts'
import { taskPlanner } from './planned-task.ts'
import { taskStorer } from './store-task.ts'

const queue = defineQueue({ name: 'imports', limits: { maxTasks: 5 }, whenFull: { block: '20s' } })
const catalogue = defineCatalogue(defineTask({ name: 'imports.line', queue, input: z.object({ n: z.int() }) }))

/** A broker whose queue has room for a number of tasks. */
function setup() {
  const clock = fakeClock()
  const store = { room: 0, stored: [] as number[] }
  const enqueue = async ({ id, input, onlyExisting }: NewTask): Promise<Enqueued> => {
    if (store.room === 0 || onlyExisting) {
      throw new QueueFullError({ queue: 'imports', limit: 'maxTasks', max: 5, found: 5 })
    }
    store.room -= 1
    store.stored.push((input as { n: number }).n)
    return { id, action: 'created' }
  }
  const broker = {
    enqueue,
    enqueueBulk: (tasks: readonly NewTask[]) => Promise.allSettled(tasks.map(enqueue)),
    enqueueAll: (tasks: readonly NewTask[]) => Promise.all(tasks.map(enqueue)),
  }
  const blocked = createBlockedCallers(clock)
  const origin = { correlationId: undefined, traceContext: () => undefined }
  const plan = taskPlanner({ catalogue, now: () => 0, ...origin, idempotencyLifeS: 60 })
  const storeTask = taskStorer(broker, blocked)
  const prepare = bulkPreparer({ broker, plan, store: storeTask, blocked })
  const request = (n: number) => ({ task: 'imports.line', input: { n } })
  return {
    clock,
    store,
    blocked,
    single: (n: number) => storeTask(plan(request(n), undefined), undefined),
    bulk: (...numbers: number[]) =>
      prepare(numbers.map(request), { idempotency: undefined, atomic: false }).send(undefined),
  }
}

it('the tasks of a bulk call do not overtake callers that are waiting, and keep their order', async () => {
  const { clock, store, blocked, single, bulk } = setup()
  const calls: Promise<unknown>[] = [single(1)]
  await clock.advance(0)
  store.room = 2
  calls.push(bulk(2, 3))
  await clock.advance(0)
  expect(store.stored).toEqual([])
  expect(blocked.count('imports')).toBe(3)
  calls.push(single(4))
  await clock.advance(20)
  store.room = 2
  await clock.advance(20)
  await Promise.all(calls)
  expect(store.stored).toEqual([1, 2, 3, 4])
})

it('a bulk call takes room for which no earlier call is waiting', async () => {
  const { store, bulk } = setup()
  store.room = 2
  expect(await bulk(1, 2)).toHaveLength(2)
  expect(store.stored).toEqual([1, 2])
})
