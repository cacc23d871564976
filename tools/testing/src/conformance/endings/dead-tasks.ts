// Conformance: dead tasks are retried and deleted by request.
import { type CallOptions, type DeadTaskAction, TaskError, type TaskId } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import { type DeadFilter, MAX_LOSSES } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { type Context, gate, long, openSetup, QUEUE, SIZE_LIMIT, short } from '../setup.ts'

const ANN = { request: 'request-1', by: 'ann' }

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
      handle: ({ input, signal }) => {
        if (isFixed) return input
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    await start()
    const id = await enqueue(long, {}, { timeout: 'none', totalTimeout: '500ms' })
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
    expect(totals).toEqual({ accepted: 2, removed: 1, drift: 0, unaccounted: 0 })
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

  describe('a search', () => searches(open))

  describe('a request by filter', () => requestsByFilter(open))
}

/** Fails with the message and the code that the tags of the task give. */
async function tasksWithErrors(open: OpenBackend) {
  const setup = await openSetup(open, {
    concurrency: 1,
    handle: ({ input }) => {
      if (input.n >= 100) throw new TypeError(`cannot read line ${input.n}`)
      throw new TaskError(input.n % 2 === 0 ? 'even' : 'odd', `no Customer ${input.n}`, { retryable: false })
    },
  })
  await setup.start()
  return {
    ...setup,
    /** Resolves when the task is dead. No two tasks end in the same millisecond. */
    async die(n: number, call: CallOptions = {}, definition: typeof long | typeof short = long): Promise<TaskId> {
      const id = await setup.enqueue(definition, { n }, { retry: { maxAttempts: 1 }, ...call })
      const { endedAt = 0 } = await setup.reaches(id, 'dead')
      await eventually(() => Date.now() > endedAt)
      return id
    },
    async found(filter: Omit<DeadFilter, 'queue'>, limit = 50): Promise<readonly TaskId[]> {
      const ids: TaskId[] = []
      let cursor: string | undefined
      do {
        const page = await setup.broker.searchDead({ queue: QUEUE, ...filter, limit, cursor })
        ids.push(...page.tasks.map(({ id }) => id))
        cursor = page.next
      } while (cursor !== undefined)
      return ids
    },
  }
}

function searches(open: OpenBackend): void {
  it('finds dead tasks by task, state, code, tag, time and text, newest first', async () => {
    const { die, find, found } = await tasksWithErrors(open)
    const a = await die(1)
    const b = await die(2, { tags: ['x', 'batch:7'] })
    const c = await die(3, {}, short)
    const d = await die(104)
    expect(await found({})).toEqual([d, c, b, a])
    expect(await found({ task: short.name })).toEqual([c])
    expect(await found({ state: 'DONE_ERROR' })).toEqual([c, b, a])
    expect(await found({ code: 'odd' })).toEqual([c, a])
    expect(await found({ code: 'unexpected_error' })).toEqual([d])
    expect(await found({ tag: 'batch:7' })).toEqual([b])
    expect(await found({ text: 'customer 3' })).toEqual([c])
    expect(await found({ text: 'done_error' })).toEqual([])
    expect(await found({ code: 'odd', task: long.name })).toEqual([a])
    const [{ endedAt: from = 0 }, { endedAt: until = 0 }] = [await find(b), await find(c)]
    expect(await found({ endedFrom: from })).toEqual([d, c, b])
    expect(await found({ endedUntil: until })).toEqual([c, b, a])
    expect(await found({ endedFrom: from, endedUntil: until })).toEqual([c, b])
    expect(await found({ endedFrom: from, endedUntil: from - 1 })).toEqual([])
  })

  it('continues after the last task of a page, whatever happens to the tasks of that page', async () => {
    const { broker, die } = await tasksWithErrors(open)
    const [a, b, c, d] = [await die(1), await die(1), await die(1), await die(1)]
    const first = await broker.searchDead({ queue: QUEUE, limit: 2, cursor: undefined })
    expect(first.tasks.map(({ id }) => id)).toEqual([d, c])
    await broker.deleteDead(c)
    await die(1)
    const second = await broker.searchDead({ queue: QUEUE, limit: 2, cursor: first.next })
    expect(second.tasks.map(({ id }) => id)).toEqual([b, a])
    await expect(
      broker.searchDead({ queue: QUEUE, fingerprint: '0123456789abcdef', limit: 2, cursor: first.next }),
    ).rejects.toMatchObject({ code: 'invalid_cursor' })
    // A cursor ends with the time of death of the last task that it is after.
    const text = Buffer.from(first.next ?? '', 'base64url').toString()
    const changed = Buffer.from(text.replace(/\d+("?\})$/, 'soon$1')).toString('base64url')
    await expect(broker.searchDead({ queue: QUEUE, limit: 2, cursor: changed })).rejects.toMatchObject({
      code: 'invalid_cursor',
    })
  })

  it('counts by fingerprint, and the counts follow retries and deletions', async () => {
    const { broker, die, found, find, reaches } = await tasksWithErrors(open)
    const [odd, even] = [
      [await die(1), await die(3), await die(5)],
      [await die(2), await die(4)],
    ]
    const [first, second, ...others] = await broker.countDead(QUEUE)
    expect(others).toEqual([])
    const { endedAt: newestAt } = await find(odd[2] as TaskId)
    expect(first).toMatchObject({
      code: 'odd',
      state: 'DONE_ERROR',
      message: 'no Customer #',
      count: 3,
      newestAt,
      newestId: odd[2],
    })
    expect(second).toMatchObject({ code: 'even', count: 2 })
    expect(await broker.countDead(QUEUE, 1)).toEqual([first])
    const fingerprint = first?.fingerprint ?? ''
    expect(await found({ fingerprint })).toEqual(odd.toReversed())
    expect((await find(odd[0] as TaskId)).fingerprint).toBe(fingerprint)

    await broker.deleteDead(odd[0] as TaskId)
    for (const id of even) await broker.deleteDead(id)
    expect(await broker.countDead(QUEUE)).toMatchObject([{ fingerprint, count: 2 }])
    await broker.retry(odd[1] as TaskId, ANN)
    await eventually(async () => (await find(odd[1] as TaskId)).fencingToken === 2)
    await reaches(odd[1] as TaskId, 'dead')
    expect(await broker.countDead(QUEUE)).toMatchObject([{ fingerprint, count: 2, newestId: odd[1] }])
    expect(await found({ fingerprint })).toEqual([odd[1], odd[2]])
  })

  it('does not find tasks that were cancelled, expired or completed', async () => {
    const { broker, create, enqueue, enqueueTask, start, settled } = await openSetup(open)
    const cancelled = await enqueue(long, {}, { delay: '1h' })
    await broker.cancel(cancelled, { stoppable: true })
    const late = create(long, {}, { queueTimeout: '50ms' })
    const expired = await enqueueTask({ ...late, enqueuedAt: late.enqueuedAt - 51, expiresAt: undefined })
    await start()
    await settled(expired)
    await settled(await enqueue(short, {}))
    expect(await broker.searchDead({ queue: QUEUE, limit: 10, cursor: undefined })).toEqual({ tasks: [] })
    expect(await broker.countDead(QUEUE)).toEqual([])
  })

  it('follows the removal of dead tasks that are no longer kept', async () => {
    const { broker, enqueue, start } = await openSetup(open, {
      locks: 'quick',
      retention: { dead: { count: 2 } },
      handle: () => {
        throw new TaskError('gone', '', { retryable: false })
      },
    })
    await start()
    for (let n = 0; n < 6; n++) await enqueue(short, {})
    await eventually(async () => (await broker.totals(QUEUE)).removed === 4)
    expect(await broker.countDead(QUEUE)).toMatchObject([{ code: 'gone', count: 2 }])
  })
}

function requestsByFilter(open: OpenBackend): void {
  const counted = { matching: 0, exact: true }
  const change = (broker: Broker, action: DeadTaskAction, filter: Omit<DeadFilter, 'queue'>, rate = 10_000) =>
    broker.changeDead({ action, filter: { queue: QUEUE, ...filter }, rate, by: 'ann', counted })
  const done = (broker: Broker, id: string) =>
    eventually(async () => {
      const progress = await broker.deadProgress(id)
      return progress?.doneAt !== undefined && progress
    })

  it('retries the matching tasks once each, even though they die again', async () => {
    const { broker, die, find, reaches } = await tasksWithErrors(open)
    const odd = [await die(1), await die(3), await die(5)]
    const others = [await die(2), await die(104)]
    const request = await change(broker, 'retry', { code: 'odd' })
    expect(await done(broker, request.id)).toMatchObject({ request, changed: 3 })
    for (const id of odd) {
      await eventually(async () => (await find(id)).fencingToken === 2)
      expect(await reaches(id, 'dead')).toMatchObject({ fencingToken: 2, retries: [{ by: 'ann' }] })
    }
    for (const id of others) expect(await find(id)).not.toHaveProperty('retries')
    expect(await broker.deadProgress(request.id)).toMatchObject({ changed: 3 })
  })

  it('deletes the matching tasks, and no others', async () => {
    const { broker, die } = await tasksWithErrors(open)
    const odd = [await die(1), await die(3)]
    const even = await die(2)
    const [kind] = await broker.countDead(QUEUE)
    const { id } = await change(broker, 'delete', { fingerprint: kind?.fingerprint })
    expect(await done(broker, id)).toMatchObject({ changed: 2 })
    for (const each of odd) expect(await broker.find(each)).toBeUndefined()
    expect((await broker.find(even))?.status).toBe('dead')
    expect(await broker.countDead(QUEUE)).toMatchObject([{ code: 'even', count: 1 }])
    const { bytes: _, ...totals } = await broker.totals(QUEUE)
    expect(totals).toEqual({ accepted: 3, removed: 2, drift: 0, unaccounted: 0 })
  })

  it('without a filter retries all dead tasks, and none that was cancelled or has expired', async () => {
    const { broker, die, enqueue, create, enqueueTask, settled, find, drain } = await tasksWithErrors(open)
    const dead = await die(1)
    const cancelled = await enqueue(long, {}, { delay: '1h' })
    await broker.cancel(cancelled, { stoppable: true })
    const late = create(long, {}, { queueTimeout: '50ms' })
    const expired = await enqueueTask({ ...late, enqueuedAt: late.enqueuedAt - 51, expiresAt: undefined })
    await settled(expired)
    await drain()
    const { id } = await change(broker, 'retry', {})
    expect(await done(broker, id)).toMatchObject({ changed: 1 })
    expect((await find(dead)).status).toBe('waiting')
    expect((await find(cancelled)).status).toBe('cancelled')
    expect((await find(expired)).status).toBe('expired')
  })

  it('changes no more tasks per second than its rate', async () => {
    const { broker, enqueue, start, drain } = await openSetup(open, {
      handle: () => {
        throw new TaskError('gone', '', { retryable: false })
      },
    })
    for (let n = 0; n < 40; n++) await enqueue(short, {})
    await start()
    await eventually(async () => (await broker.counts(QUEUE)).dead === 40)
    await drain()
    // Up to half a second's tasks are changed at once.
    const { id, at } = await change(broker, 'retry', {}, 40)
    const { changed, doneAt = 0 } = await done(broker, id)
    expect(changed).toBe(40)
    expect(doneAt - at).toBeGreaterThanOrEqual(400)
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 40, dead: 0 })
  })

  it('retries no task for which a copy was enqueued in another queue, and each of the two tasks names the other', async () => {
    const { broker, die, find, create, enqueueTask } = await tasksWithErrors(open)
    const id = await die(1)
    const copy = await enqueueTask({ ...create(long, { n: 1 }, { delay: '1h' }), retryOf: id })
    expect(await broker.retry(id, { ...ANN, copy })).toBe('done')
    expect(await broker.retry(id, { ...ANN, copy })).toBe('done')
    expect(await find(id)).toMatchObject({ status: 'dead', retries: [{ by: 'ann', copy }] })
    expect(await find(copy)).toMatchObject({ retryOf: id })
    expect((await find(id)).retries).toHaveLength(1)
    const retry = await change(broker, 'retry', {})
    expect(await done(broker, retry.id)).toMatchObject({ changed: 0 })
    expect((await find(id)).status).toBe('dead')
    const removal = await change(broker, 'delete', {})
    expect(await done(broker, removal.id)).toMatchObject({ changed: 1 })
  })

  it('is listed with its progress, newest first', async () => {
    const { broker, die } = await tasksWithErrors(open)
    expect(await broker.listDeadRequests(QUEUE, 10)).toEqual([])
    for (const n of [1, 3, 2]) await die(n)
    const retry = await change(broker, 'retry', { code: 'odd' })
    await done(broker, retry.id)
    const removal = await change(broker, 'delete', { code: 'even' })
    await done(broker, removal.id)
    expect(await broker.listDeadRequests(QUEUE, 10)).toEqual([
      { request: removal, changed: 1, doneAt: expect.any(Number) },
      { request: retry, changed: 2, doneAt: expect.any(Number) },
    ])
    expect(await broker.listDeadRequests(QUEUE, 1)).toMatchObject([{ request: removal }])
    await expect(broker.listDeadRequests('unknown', 10)).rejects.toMatchObject({ code: 'queue_not_found' })
  })

  it('can be counted beforehand, and an unknown request has no progress', async () => {
    const { broker, die, create } = await tasksWithErrors(open)
    const first = await die(1)
    await die(3)
    await die(2)
    const matching = (filter: Omit<DeadFilter, 'queue'>) => broker.countMatchingDead({ queue: QUEUE, ...filter })
    expect(await matching({})).toEqual({ matching: 3, exact: true })
    expect(await matching({ code: 'odd' })).toEqual({ matching: 2, exact: true })
    const { endedAt } = (await broker.find(first)) ?? {}
    expect(await matching({ code: 'odd', endedUntil: endedAt })).toEqual({ matching: 1, exact: true })
    expect(await matching({ endedUntil: endedAt })).toEqual({ matching: 1, exact: true })
    const [kind] = await broker.countDead(QUEUE)
    expect(await matching({ fingerprint: kind?.fingerprint })).toEqual({ matching: 2, exact: true })
    expect(await broker.deadProgress(create(long, {}).id)).toBeUndefined()
  })
}
