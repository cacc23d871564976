// Conformance: dead tasks are retried and deleted by request.
import { TaskError, type TaskId } from '@bullpen/contract'
import { MAX_LOSSES } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { type Context, gate, long, NO_ENTRIES, openSetup, QUEUE, SIZE_LIMIT, short, untilStopped } from '../setup.ts'
import { ANN } from './dead-tasks-setup.ts'

/** Fails permanently unless `mayPass` returns true. */
async function failingTasks(open: OpenBackend, mayPass: (context: Context) => boolean) {
  const seen: { readonly attempt: number; readonly fencingToken: number; readonly input: unknown }[] = []
  const setup = await openSetup(open, {
    locks: 'quick',
    handle: (context) => {
      const { attempt, fencingToken, input } = context
      seen.push({ attempt, fencingToken, input })
      if (!mayPass(context)) throw new TaskError('gone', `no customer ${input.n}`, { retryable: false })
      return input
    },
  })
  await setup.start()
  return {
    ...setup,
    seen,
    async die(definition: typeof long | typeof short = long): Promise<TaskId> {
      const id = await setup.enqueue(definition, { n: 7 })
      await setup.reaches(id, 'dead')
      return id
    },
  }
}

export function deadTasks(open: OpenBackend): void {
  it('a retried task keeps its id, starts again with attempt 1, and its fencing token continues', async () => {
    let isFixed = false
    const { broker, die, seen, settled, find } = await failingTasks(open, () => isFixed)
    const id = await die()
    const before = Date.now()
    isFixed = true
    expect(await broker.retry(id, ANN)).toBe('done')
    expect(await settled(id)).toMatchObject({
      id,
      status: 'completed',
      attemptsMade: 1,
      fencingToken: 2,
      output: { n: 7 },
    })
    expect(seen).toMatchObject([
      { attempt: 1, fencingToken: 1 },
      { attempt: 1, fencingToken: 2 },
    ])
    const { retries = [], attempts } = await find(id)
    expect(retries).toEqual([{ at: expect.any(Number), by: 'ann' }])
    expect(retries[0]?.at).toBeGreaterThanOrEqual(before - 1_000)
    expect(attempts.map(({ state }) => state)).toEqual(['DONE_ERROR', 'DONE_SUCCESS'])
  })

  it('a retried task gets all attempts of its policy again', async () => {
    const { broker, enqueue, start, find, reaches } = await openSetup(open, {
      handle: () => {
        throw new TaskError('busy', 'not now')
      },
    })
    await start()
    const id = await enqueue(short, {})
    await reaches(id, 'dead')
    expect(await broker.retry(id, ANN)).toBe('done')
    await eventually(async () => {
      const { fencingToken, status } = await find(id)
      return fencingToken === 6 && status === 'dead'
    })
    expect(await find(id)).toMatchObject({ attemptsMade: 3, maxAttempts: 3 })
    expect((await find(id)).attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 1, 2, 3])
  })

  it('a task that is dead because its workers died runs again', async () => {
    let isFixed = false
    const { backend, broker, die, settled } = await failingTasks(open, () => isFixed)
    const id = await die()
    await backend.countDeaths?.(id, MAX_LOSSES + 1)
    isFixed = true
    expect(await broker.retry(id, ANN)).toBe('done')
    expect((await settled(id))?.status).toBe('completed')
  })

  it('a retry that is sent twice retries the task once', async () => {
    const { broker, die, find, seen } = await failingTasks(open, () => false)
    const id = await die()
    expect(await broker.retry(id, ANN)).toBe('done')
    await eventually(async () => (await find(id)).fencingToken === 2 && (await find(id)).status === 'dead')
    expect(await broker.retry(id, ANN)).toBe('done')
    expect((await find(id)).status).toBe('dead')
    expect(await broker.retry(id, { request: 'request-2', by: 'bob' })).toBe('done')
    await eventually(async () => (await find(id)).fencingToken === 3 && (await find(id)).status === 'dead')
    expect((await find(id)).retries).toMatchObject([{ by: 'ann' }, { by: 'bob' }])
    expect(seen).toHaveLength(3)
  })

  it('only a dead task is retried or deleted', async () => {
    const { broker, enqueue, create, settled, idsOf } = await failingTasks(open, () => true)
    const completed = await enqueue(short, {})
    await settled(completed)
    const cancelled = await enqueue(long, {}, { delay: '1h' })
    await broker.cancel(cancelled, { stoppable: true })
    const waiting = await enqueue(long, {}, { delay: '1h' })
    for (const id of [completed, cancelled, waiting]) {
      expect(await broker.retry(id, ANN)).toBe('not_dead')
      expect(await broker.deleteDead(id)).toBe('not_dead')
    }
    const { id: unknown } = create(long, {})
    expect(await broker.retry(unknown, ANN)).toBe('not_found')
    expect(await broker.deleteDead(unknown)).toBe('not_found')
    expect(await idsOf('cancelled')).toEqual([cancelled])
  })

  it('a retry can replace the input', async () => {
    const { broker, die, settled } = await failingTasks(open, ({ input }) => input.n === 8)
    const id = await die()
    expect(await broker.retry(id, { ...ANN, edit: { input: { n: 8 }, version: long.version } })).toBe('done')
    expect(await settled(id)).toMatchObject({ status: 'completed', input: { n: 8 }, output: { n: 8 } })
  })

  it('a new input that is too large is refused, and the task stays dead', async () => {
    const { broker, die, find } = await failingTasks(open, () => false)
    const id = await die()
    const edit = { input: 'x'.repeat(SIZE_LIMIT), version: 1 }
    await expect(broker.retry(id, { ...ANN, edit })).rejects.toMatchObject({ code: 'payload_too_large' })
    expect((await find(id)).status).toBe('dead')
  })

  it('the total timeout of a retried task starts again', async () => {
    let isFixed = false
    const { broker, enqueue, start, reaches, settled } = await openSetup(open, {
      handle: (context) => (isFixed ? context.input : untilStopped(context)),
    })
    await start()
    const id = await enqueue(long, {}, { timeout: 'none', totalTimeout: '2s' })
    await reaches(id, 'dead')
    isFixed = true
    expect(await broker.retry(id, ANN)).toBe('done')
    expect((await settled(id))?.status).toBe('completed')
  })

  it('finished steps are not run again after a retry', async () => {
    let isFixed = false
    const ran: string[] = []
    const { broker, enqueue, start, reaches, settled } = await openSetup(open, {
      handle: async ({ once, input }) => {
        await once('charge', async () => ran.push('charge'))
        if (!isFixed) throw new TaskError('gone', '', { retryable: false })
        return input
      },
    })
    await start()
    const id = await enqueue(long, {})
    await reaches(id, 'dead')
    isFixed = true
    await broker.retry(id, ANN)
    expect((await settled(id))?.status).toBe('completed')
    expect(ran).toEqual(['charge'])
  })

  it('a retried task counts as unfinished again, and a deleted one as removed', async () => {
    const { broker, drain, die, find } = await failingTasks(open, () => false)
    const [retried, deleted] = [await die(), await die()]
    await drain()
    expect((await broker.totals(QUEUE)).bytes).toBe(0)
    expect(await broker.retry(retried, ANN)).toBe('done')
    expect(await broker.deleteDead(deleted)).toBe('done')
    expect((await find(retried)).status).toBe('waiting')
    expect(await broker.find(deleted)).toBeUndefined()
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 1, dead: 0 })
    expect(await broker.countDead(QUEUE)).toEqual([])
    const { bytes, ...totals } = await broker.totals(QUEUE)
    expect(totals).toEqual({
      ...{ accepted: 2, removed: 1, ended: 2, recovered: 0 },
      ...{ drift: 0, unaccounted: 0, outbox: NO_ENTRIES },
    })
    expect(bytes).toBeGreaterThan(512)
  })

  it('a retried task runs, although an earlier cancel by filter has not finished', async () => {
    const { handle, holds, open: openGate } = gate()
    let isFixed = false
    const setup = await openSetup(open, {
      handle(context) {
        if (context.input.n === 1) return handle(context)
        if (!isFixed) throw new TaskError('gone', 'it is gone', { retryable: false })
        return context.input
      },
    })
    const { broker, enqueue, start, reaches, settled, find } = setup
    await start()
    const id = await enqueue(long, { n: 3 })
    await reaches(id, 'dead')
    // A running short task cannot be stopped, so the cancellation does not finish.
    await enqueue(short, { n: 1 })
    await holds(1)
    const { id: rule } = await broker.cancelMany({ queue: QUEUE, before: Date.now() + 1_000, reason: 'cancelled' })
    isFixed = true
    expect(await broker.retry(id, ANN)).toBe('done')
    expect((await find(id)).status).not.toBe('cancelled')
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 3 } })
    expect((await broker.cancelProgress(rule))?.doneAt).toBeUndefined()
    openGate()
  })

  it('a retried task can be cancelled', async () => {
    const { broker, drain, die, find } = await failingTasks(open, () => false)
    const id = await die()
    await drain()
    await broker.retry(id, ANN)
    expect(await broker.cancel(id, { stoppable: true })).toBe('cancelled')
    expect((await find(id)).status).toBe('cancelled')
    expect(await broker.retry(id, { request: 'request-2', by: 'ann' })).toBe('not_dead')
  })
}
