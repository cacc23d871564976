// Conformance: how long tasks are kept after their end, by status.
import { type FinalStatus, TaskError, type TaskId } from '@bullpen/contract'
import { FINAL_STATUSES } from '@bullpen/contract/internal'
import type { Retention } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, NO_ENTRIES, openSetup, QUEUE, short } from '../setup.ts'

/** A pool whose handler fails if its input is 1, and a way to end a task with each status. */
async function endingTasks(open: OpenBackend, retention: Retention) {
  const setup = await openSetup(open, {
    retention,
    locks: 'quick',
    concurrency: 1,
    handle: ({ input }) => {
      if (input.n === 1) throw new TaskError('gone', '', { retryable: false })
      return input
    },
  })
  const { enqueue, create, enqueueTask, broker } = setup
  const enqueueOne: Readonly<Record<FinalStatus, () => Promise<TaskId>>> = {
    completed: () => enqueue(short, {}),
    dead: () => enqueue(short, { n: 1 }),
    async cancelled() {
      const id = await enqueue(long, {}, { delay: '1h' })
      await broker.cancel(id, { stoppable: true })
      return id
    },
    expired() {
      const late = create(long, {}, { queueTimeout: '1h' })
      return enqueueTask({ ...late, delayMs: 3_600_000, expiresAt: late.enqueuedAt - 1 })
    },
  }
  await setup.start()
  return {
    ...setup,
    /** Ends a task with the status, and resolves when it has ended. It may be removed by then. */
    async end(status: FinalStatus): Promise<TaskId> {
      // No two tasks end in the same millisecond.
      const now = Date.now()
      await eventually(() => Date.now() > now)
      const id = await enqueueOne[status]()
      await eventually(async () => ((await broker.find(id))?.endedAt ?? (await isRemoved(id))) !== false)
      return id
    },
  }

  async function isRemoved(id: TaskId): Promise<boolean> {
    return (await broker.find(id)) === undefined
  }
}

export function retention(open: OpenBackend): void {
  it.each(FINAL_STATUSES)('of the %s tasks, as many as the count are kept, those that ended last', async (status) => {
    const { end, broker, find, idsOf } = await endingTasks(open, { [status]: { count: 3 } })
    const ids: TaskId[] = []
    for (let n = 0; n < 8; n++) ids.push(await end(status))
    await eventually(async () => (await broker.counts(QUEUE))[status] === 3)
    expect((await idsOf(status)).toSorted()).toEqual(ids.slice(-3).toSorted())
    for (const id of ids.slice(0, 5)) expect(await broker.find(id)).toBeUndefined()
    for (const id of ids.slice(5)) expect((await find(id)).status).toBe(status)
    expect(await broker.totals(QUEUE)).toEqual({
      bytes: 0,
      accepted: 8,
      removed: 5,
      ended: 8,
      recovered: 0,
      drift: 0,
      unaccounted: 0,
      outbox: NO_ENTRIES,
    })
  })

  it.each(FINAL_STATUSES)(
    '%s tasks are removed when they have reached the age, though no other task ends',
    async (status) => {
      const { end, broker } = await endingTasks(open, { [status]: { ageMs: 300 } })
      const others = FINAL_STATUSES.filter((other) => other !== status)
      for (const other of others) await end(other)
      const [first, second] = [await end(status), await end(status)]
      await eventually(async () => (await broker.counts(QUEUE))[status] === 0)
      for (const id of [first, second]) expect(await broker.find(id)).toBeUndefined()
      const counts = await broker.counts(QUEUE)
      expect(others.map((other) => counts[other])).toEqual([1, 1, 1])
      expect(await broker.totals(QUEUE)).toEqual({
        bytes: 0,
        accepted: 5,
        removed: 2,
        ended: 5,
        recovered: 0,
        drift: 0,
        unaccounted: 0,
        outbox: NO_ENTRIES,
      })
    },
  )
}
