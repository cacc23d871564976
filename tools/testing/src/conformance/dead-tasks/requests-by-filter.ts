// Conformance: the dead tasks that match a filter are retried and deleted.
import { type DeadTaskAction, TaskError } from '@bullpen/contract'
import type { Broker } from '@bullpen/engine'
import type { DeadFilter } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, NO_ENTRIES, openSetup, QUEUE, short } from '../setup.ts'

import { ANN, tasksWithErrors } from './dead-tasks-setup.ts'

export function deadTaskRequests(open: OpenBackend): void {
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
    expect(totals).toEqual({
      accepted: 3,
      removed: 2,
      ended: 3,
      recovered: 0,
      drift: 0,
      unaccounted: 0,
      outbox: NO_ENTRIES,
    })
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

  it('changes no further task once it is stopped, and keeps what it has changed', async () => {
    const { broker, die, create } = await tasksWithErrors(open)
    for (const n of [1, 3, 5]) await die(n)
    const request = await change(broker, 'delete', {}, 1)
    await eventually(async () => ((await broker.deadProgress(request.id))?.changed ?? 0) > 0)
    const stopped = await broker.stopDead(request.id, 'bob')
    expect(stopped).toMatchObject({ request, doneAt: expect.any(Number), stoppedBy: 'bob' })
    const { changed = 0 } = stopped ?? {}
    expect(await broker.counts(QUEUE)).toMatchObject({ dead: 3 - changed })
    expect(await broker.stopDead(request.id, 'eve')).toEqual(stopped)
    const rest = await change(broker, 'delete', {})
    expect(await done(broker, rest.id)).toMatchObject({ changed: 3 - changed })
    expect(await broker.deadProgress(request.id)).toEqual(stopped)
    expect(await broker.stopDead(rest.id, 'bob')).not.toHaveProperty('stoppedBy')
    expect(await broker.listDeadRequests(QUEUE, 10)).toMatchObject([{ changed: 3 - changed }, { stoppedBy: 'bob' }])
    expect(await broker.stopDead(create(long, {}).id, 'bob')).toBeUndefined()
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
