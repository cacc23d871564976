// Conformance: dead tasks are found by a filter and counted by fingerprint.
import { TaskError, type TaskId } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, QUEUE, short } from '../setup.ts'

import { ANN, tasksWithErrors } from './dead-tasks-setup.ts'

export function deadTaskSearches(open: OpenBackend): void {
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
