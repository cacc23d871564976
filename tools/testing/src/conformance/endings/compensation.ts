// Tests that every broker enqueues a task's compensations exactly once, one after another, unless the task is completed.
import { TaskError, type TaskId, type TaskRecord } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, type Context, child, gate, long, openSetup, QUEUE, short } from '../setup.ts'

const ANN = { by: 'ann' }

/** A failure that is not retried. */
export const fatal = () => new TaskError('fatal', 'it broke', { retryable: false })

async function openCompensated(open: OpenBackend, handle: (context: Context) => unknown) {
  const setup = await openSetup(open, { locks: 'quick', handle })
  const { broker } = setup
  const isSettled = () => eventually(async () => (await broker.totals(QUEUE)).outbox.entries === 0)
  const compensationsOf = async (id: TaskId): Promise<readonly TaskRecord[]> => {
    await isSettled()
    const { tasks } = await broker.list({ queue: AFTER, status: 'waiting', limit: 200, cursor: undefined })
    return tasks.filter(({ followUpOf }) => followUpOf === id)
  }
  return {
    ...setup,
    compensationsOf,
    /** Resolves with the inputs of the task's compensations. */
    undone: async (id: TaskId) => (await compensationsOf(id)).map(({ input }) => (input as { n: number }).n),
  }
}

export function compensation(open: OpenBackend): void {
  it('a completed task has no compensation, and a dead one has the one that was registered', async () => {
    const { enqueue, start, settled, undone, find, broker } = await openCompensated(open, async (context) => {
      const { input, compensate } = context
      await compensate(after, { n: input.n })
      if (input.n === 13) throw fatal()
      return input
    })
    await start()
    for (const definition of [short, long]) {
      const [lives, dies] = [await enqueue(definition, { n: 5 }), await enqueue(definition, { n: 13 })]
      expect((await settled(lives))?.status).toBe('completed')
      expect((await settled(dies))?.status).toBe('dead')
      expect(await undone(lives)).toEqual([])
      expect(await undone(dies)).toEqual([13])
      expect(await find(lives)).not.toHaveProperty('compensations')
      expect(await find(lives)).not.toHaveProperty('compensatedAt')
      expect((await find(dies)).compensatedAt).toBeGreaterThan(0)
    }
    expect((await broker.totals(QUEUE)).bytes).toBe(0)
  })

  it('a running task shows its compensations', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, settled, find } = await openCompensated(open, async (context) => {
      await context.compensate(after, { n: 1 })
      await context.compensate(after, { n: 2 }, { key: 'order-7' })
      return handle(context)
    })
    await start()
    const id = await enqueue(long, {})
    await holds(1)
    expect((await find(id)).compensations).toEqual([
      { task: after.name, key: '' },
      { task: after.name, key: 'order-7' },
    ])
    release()
    await settled(id)
  })

  it('a registration with the same definition and key counts once, also in a later attempt', async () => {
    const { enqueue, start, settled, undone } = await openCompensated(open, async ({ compensate, attempt, input }) => {
      await compensate(after, { n: attempt }, { key: 'a' })
      await compensate(after, { n: 10 * attempt }, { key: 'a' })
      if (attempt < 3) throw new TaskError('busy', 'not yet')
      if (input.n === 13) throw fatal()
      return input
    })
    await start()
    const [dies, lives] = [await enqueue(long, { n: 13 }), await enqueue(long, { n: 1 })]
    expect(await settled(dies)).toMatchObject({ status: 'dead', attemptsMade: 3 })
    expect((await settled(lives))?.status).toBe('completed')
    expect(await undone(dies)).toEqual([30])
    expect(await undone(lives)).toEqual([])
  })

  it('several compensations run one after another in the reverse order of their registration', async () => {
    const order: number[] = []
    const { enqueue, start, settled } = await openCompensated(open, async ({ name, compensate, input }) => {
      if (String(name) === child.name) {
        order.push(input.n)
        if (input.n === 2) throw fatal()
        return input
      }
      for (const n of [1, 2, 3]) await compensate(child, { n }, { key: `${n}` })
      throw fatal()
    })
    await start()
    const id = await enqueue(long, {})
    expect((await settled(id))?.status).toBe('dead')
    // One that fails does not hold up those before it.
    await eventually(() => order.length === 3)
    expect(order).toEqual([3, 2, 1])
  })

  it('a running task that is cancelled is compensated', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, undone, broker } = await openCompensated(open, async (context) => {
      await context.compensate(after, { n: 1 })
      return handle(context)
    })
    await start()
    const id = await enqueue(long, {})
    await holds(1)
    await broker.cancel(id, { stoppable: true })
    expect((await settled(id))?.status).toBe('cancelled')
    expect(await undone(id)).toEqual([1])
  })

  it('a task that is cancelled while it waits for a retry is compensated', async () => {
    const { enqueue, start, settled, undone, reaches, broker } = await openCompensated(open, async ({ compensate }) => {
      await compensate(after, { n: 1 })
      throw new TaskError('busy', 'not now', { retryAfter: '1h' })
    })
    await start()
    const id = await enqueue(long, {})
    await reaches(id, 'retrying')
    expect(await broker.cancel(id, { stoppable: true })).toBe('cancelled')
    expect((await settled(id))?.status).toBe('cancelled')
    expect(await undone(id)).toEqual([1])
  })

  it('a task whose worker is killed is compensated only if it does not complete later', async () => {
    const { handle, holds } = gate()
    const { enqueue, start, settled, undone, backend } = await openCompensated(open, async (context) => {
      const { compensate, fencingToken, input } = context
      if (fencingToken === 1) {
        await compensate(after, { n: input.n })
        return handle(context)
      }
      if (input.n === 13) throw fatal()
      return input
    })
    const ids = [await enqueue(long, { n: 1 }), await enqueue(long, { n: 13 })]
    await start('gone')
    await holds(2)
    await backend.kill('gone', ids)
    await start('other')
    const [lives, dies] = ids as [TaskId, TaskId]
    expect((await settled(lives))?.status).toBe('completed')
    expect((await settled(dies))?.status).toBe('dead')
    expect(await undone(lives)).toEqual([])
    expect(await undone(dies)).toEqual([13])
  })

  it('a registration by an attempt that has lost its lock is refused', async () => {
    const reached = Promise.withResolvers<void>()
    const lost = Promise.withResolvers<void>()
    const errors: unknown[] = []
    const { enqueue, start, settled, undone, backend } = await openCompensated(open, async (context) => {
      const { compensate, fencingToken, input } = context
      if (fencingToken > 1) return input
      reached.resolve()
      await lost.promise
      await compensate(after, { n: 1 }).catch((error: unknown) => errors.push(error))
      throw new Error('the lock is lost')
    })
    await start()
    const id = await enqueue(long, { n: 4 })
    await reached.promise
    await backend.loseLock(id)
    lost.resolve()
    await eventually(() => errors.length === 1)
    expect(errors).toMatchObject([{ code: expect.stringMatching(/^(lock_lost|wrong_state)$/) }])
    expect((await settled(id))?.status).toBe('completed')
    expect(await undone(id)).toEqual([])
  })

  it('a compensated task is retried only if the request says so, and is compensated again', async () => {
    const { enqueue, start, settled, undone, find, broker } = await openCompensated(open, async (context) => {
      await context.compensate(after, { n: context.fencingToken })
      throw fatal()
    })
    await start()
    const id = await enqueue(long, {})
    await settled(id)
    expect(await undone(id)).toEqual([1])
    expect(await broker.retry(id, { ...ANN, request: 'r1' })).toBe('compensated')
    const counted = { matching: 1, exact: true }
    const filter = { queue: QUEUE }
    const skipped = await broker.changeDead({ action: 'retry', filter, rate: 1_000, ...ANN, counted })
    await eventually(async () => (await broker.deadProgress(skipped.id))?.doneAt !== undefined)
    expect(await broker.deadProgress(skipped.id)).toMatchObject({ changed: 0 })
    expect(await find(id)).toMatchObject({ status: 'dead', compensatedAt: expect.any(Number) })
    expect(await broker.retry(id, { ...ANN, request: 'r2', afterCompensation: true })).toBe('done')
    await eventually(async () => (await undone(id)).length === 2)
    expect((await undone(id)).toSorted()).toEqual([1, 2])
    const change = { action: 'retry', filter, rate: 1_000, ...ANN, counted, afterCompensation: true } as const
    await broker.changeDead(change)
    await eventually(async () => (await undone(id)).length === 3)
  })

  it('every retry of a compensated task is refused unless the request says otherwise, until the task is completed', async () => {
    const { enqueue, start, settled, find, broker } = await openCompensated(open, async (context) => {
      if (context.fencingToken === 1) await context.compensate(after, { n: 1 })
      if (context.fencingToken < 3) throw fatal()
      return context.input
    })
    await start()
    const id = await enqueue(long, {})
    await settled(id)
    expect(await broker.retry(id, { ...ANN, request: 'r1', afterCompensation: true })).toBe('done')
    // The second attempt has registered no compensation.
    await eventually(async () => {
      const { status, fencingToken } = await find(id)
      return status === 'dead' && fencingToken === 2
    })
    expect(await broker.retry(id, { ...ANN, request: 'r2' })).toBe('compensated')
    const counted = { matching: 1, exact: true }
    const skipped = await broker.changeDead({ action: 'retry', filter: { queue: QUEUE }, rate: 1_000, ...ANN, counted })
    await eventually(async () => (await broker.deadProgress(skipped.id))?.doneAt !== undefined)
    expect(await broker.deadProgress(skipped.id)).toMatchObject({ changed: 0 })
    expect(await broker.retry(id, { ...ANN, request: 'r3', afterCompensation: true })).toBe('done')
    await eventually(async () => (await find(id)).status === 'completed')
    expect(await find(id)).not.toHaveProperty('compensatedAt')
  })

  it('more than 16 compensations are refused, and the error is the handler’s to handle', async () => {
    const errors: unknown[] = []
    const { enqueue, start, settled } = await openCompensated(open, async ({ compensate, input }) => {
      for (let n = 0; n < 17; n++) {
        await compensate(after, { n }, { key: `${n}` }).catch((error: unknown) => errors.push(error))
      }
      await compensate(after, { n: 1 }, { key: 'not valid' }).catch((error: unknown) => errors.push(error))
      return input
    })
    await start()
    expect((await settled(await enqueue(long, {})))?.status).toBe('completed')
    expect(errors).toMatchObject([{ code: 'payload_too_large' }, { code: 'invalid_request' }])
  })
}
