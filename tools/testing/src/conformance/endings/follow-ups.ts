// Tests that every broker enqueues the follow-up tasks of a task exactly once for each of its ends.
import { type FollowUp, followUp, TaskError, type TaskId, type TaskRecord } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, long, NO_ENTRIES, openSetup, QUEUE, short, unlucky, untilStopped } from '../setup.ts'

const TRACE = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' }

/** One follow-up for each option. Their inputs tell them apart. */
export const ONE_OF_EACH = {
  onSuccess: [followUp(after, { n: 1 })],
  onFailure: [followUp(after, { n: 2 })],
  onEnd: [followUp(after, { n: 3 })],
}

/** Opens a setup whose handler dies with the input 13, and otherwise returns its input. */
export async function openFollowed(open: OpenBackend, options: Parameters<typeof openSetup>[1] = {}) {
  const setup = await openSetup(open, { locks: 'quick', handle: unlucky, ...options })
  const { broker } = setup
  const followUpsOf = async (id: TaskId): Promise<readonly TaskRecord[]> => {
    const pages = await Promise.all(
      (['waiting', 'scheduled'] as const).map((status) =>
        broker.list({ queue: AFTER, status, limit: 200, cursor: undefined }),
      ),
    )
    return pages.flatMap(({ tasks }) => tasks).filter(({ followUpOf }) => followUpOf === id)
  }
  return {
    ...setup,
    followUpsOf,
    /** Resolves with the inputs of the follow-ups once the outbox is empty. */
    async followed(id: TaskId): Promise<readonly number[]> {
      await eventually(async () => (await broker.totals(QUEUE)).outbox.entries === 0)
      return (await followUpsOf(id)).map(({ input }) => (input as { n: number }).n).toSorted()
    },
  }
}

export function followUps(open: OpenBackend): void {
  it('a completed task is followed by its tasks for success and for any end, whose queue may be full', async () => {
    const { enqueue, start, settled, followed } = await openFollowed(open)
    await start()
    for (const definition of [short, long]) {
      const id = await enqueue(definition, { n: 5 }, ONE_OF_EACH)
      expect((await settled(id))?.status).toBe('completed')
      expect(await followed(id)).toEqual([1, 3])
    }
  })

  it('a dead task is followed by its tasks for failure and for any end', async () => {
    const { enqueue, start, settled, followed } = await openFollowed(open)
    await start()
    const id = await enqueue(long, { n: 13 }, ONE_OF_EACH)
    expect((await settled(id))?.status).toBe('dead')
    expect(await followed(id)).toEqual([2, 3])
  })

  it('a task that is cancelled before or while it runs is followed only by its tasks for any end', async () => {
    const { enqueue, start, settled, followed, broker } = await openFollowed(open, {
      handle: untilStopped,
    })
    const waits = await enqueue(long, {}, ONE_OF_EACH)
    expect(await broker.cancel(waits, { stoppable: true })).toBe('cancelled')
    await start()
    const runs = await enqueue(long, {}, ONE_OF_EACH)
    await eventually(async () => (await broker.find(runs))?.status === 'active')
    await broker.cancel(runs, { stoppable: true })
    expect((await settled(runs))?.status).toBe('cancelled')
    expect(await followed(waits)).toEqual([3])
    expect(await followed(runs)).toEqual([3])
  })

  it('an expired task is followed by its tasks for failure and for any end', async () => {
    const { enqueue, settled, followed } = await openFollowed(open)
    const id = await enqueue(long, {}, { ...ONE_OF_EACH, queueTimeout: '20ms' })
    expect((await settled(id))?.status).toBe('expired')
    expect(await followed(id)).toEqual([2, 3])
  })

  it('an attempt that is retried releases nothing', async () => {
    const { enqueue, start, settled, followed } = await openFollowed(open, {
      handle({ attempt, input }) {
        if (attempt < 3) throw new TaskError('busy', 'not yet')
        return input
      },
    })
    await start()
    const id = await enqueue(long, {}, ONE_OF_EACH)
    expect(await settled(id)).toMatchObject({ status: 'completed', attemptsMade: 3 })
    expect(await followed(id)).toEqual([1, 3])
  })

  it('a dead task releases its tasks again each time it is retried and ends', async () => {
    const { enqueue, start, settled, followed, followUpsOf, broker } = await openFollowed(open)
    await start()
    const id = await enqueue(long, { n: 13 }, ONE_OF_EACH)
    for (const ends of [1, 2, 3]) {
      expect((await settled(id))?.status).toBe('dead')
      await eventually(async () => (await followUpsOf(id)).length === 2 * ends)
      if (ends < 3) await broker.retry(id, { request: `r${ends}`, by: 'ann' })
    }
    expect(await followed(id)).toEqual([2, 2, 2, 3, 3, 3])
    const edit = { input: { n: 4 }, version: 1 }
    await broker.retry(id, { request: 'r3', by: 'ann', edit })
    expect((await settled(id))?.status).toBe('completed')
    expect(await followed(id)).toEqual([1, 2, 2, 2, 3, 3, 3, 3])
  })

  it('a follow-up has its own options, the correlation id and trace of its task, and follow-ups of its own', async () => {
    const { create, enqueueTask, start, settled, followUpsOf } = await openFollowed(open)
    await start()
    const nested: readonly FollowUp[] = [followUp(long, { n: 7 }, { onEnd: [followUp(after, { n: 8 })] })]
    const more = { tags: ['a'], meta: { of: 'b' }, priority: 3, delay: '1h', onFailure: nested } as const
    const origin = { correlationId: 'request-1', traceContext: TRACE }
    const id = await enqueueTask(create(long, {}, { onSuccess: [followUp(after, { n: 1 }, more)] }, origin))
    await settled(id)
    const [found] = await eventually(async () => {
      const all = await followUpsOf(id)
      return all.length === 1 && all
    })
    expect(found).toMatchObject({
      ...{ task: after.name, queue: AFTER, status: 'scheduled', input: { n: 1 }, tags: ['a'], meta: { of: 'b' } },
      ...{ priority: 3, maxAttempts: 3, ...origin, followUpOf: id },
      followUps: [{ on: 'failure', task: long.name, queue: QUEUE }],
    })
    expect((found?.dueAt ?? 0) - (found?.enqueuedAt ?? 0)).toBe(3_600_000)
  })

  it('a follow-up that has ended and is not kept is followed by its own follow-ups, and is not enqueued again', async () => {
    const { enqueue, start, followUpsOf, broker, events } = await openFollowed(open, {
      retention: { completed: { count: 0 } },
    })
    await start()
    await enqueue(short, { n: 1 }, { onSuccess: [followUp(short, { n: 2 }, { onEnd: [followUp(after, { n: 3 })] })] })
    const started = () => events.flatMap((event) => (event.event === 'attempt.started' ? [event.id] : []))
    await eventually(() => started().length === 2)
    const [, second] = started()
    await eventually(async () => (await followUpsOf(second as TaskId)).length === 1)
    expect((await broker.totals(QUEUE)).outbox).toEqual(NO_ENTRIES)
    expect(started()).toHaveLength(2)
  })

  it('a task shows its follow-ups until it has ended, and while it is dead', async () => {
    const { enqueue, start, settled, find, broker } = await openFollowed(open)
    const shown = (['success', 'failure', 'end'] as const).map((on) => ({ on, task: after.name, queue: AFTER }))
    const [lives, dies] = [await enqueue(short, { n: 1 }, ONE_OF_EACH), await enqueue(short, { n: 13 }, ONE_OF_EACH)]
    expect((await find(lives)).followUps).toEqual(shown)
    expect((await broker.totals(QUEUE)).bytes).toBeGreaterThan(2 * 512)
    await start()
    expect(await settled(lives)).not.toHaveProperty('followUps')
    expect((await settled(dies))?.followUps).toEqual(shown)
    expect((await broker.totals(QUEUE)).bytes).toBe(0)
    await broker.deleteDead(dies)
    await eventually(async () => (await broker.totals(QUEUE)).outbox.entries === 0)
  })

  it('a follow-up that a handler has added is enqueued only if the attempt completes the task', async () => {
    const { enqueue, start, settled, followed, find } = await openFollowed(open, {
      handle({ attempt, input, onSuccess }) {
        onSuccess(after, { n: 10 * attempt })
        onSuccess(after, { n: 20 * attempt })
        onSuccess(after, { n: 30 * attempt }, { key: 'a' })
        if (input.n === 13) throw new TaskError('unlucky', 'thirteen', { retryable: false })
        if (attempt === 1) throw new TaskError('busy', 'not yet')
        return input
      },
    })
    await start()
    for (const definition of [short, long]) {
      const [lives, dies] = [await enqueue(definition, {}, ONE_OF_EACH), await enqueue(definition, { n: 13 })]
      expect(await settled(lives)).toMatchObject({ status: 'completed', attemptsMade: 2 })
      expect((await settled(dies))?.status).toBe('dead')
      expect(await followed(lives)).toEqual([1, 3, 40, 60])
      expect(await followed(dies)).toEqual([])
      expect(await find(lives)).not.toHaveProperty('followUps')
    }
  })

  it('tasks that are enqueued together keep their own follow-ups, also if the call is repeated', async () => {
    const { create, start, settled, followed, broker } = await openFollowed(open)
    const tasks = [1, 2, 3].map((n) => create(short, { n }, { onSuccess: [followUp(after, { n: 10 * n })] }))
    const [single, ...together] = tasks
    await broker.enqueueBulk(single === undefined ? [] : [single])
    await broker.enqueueAll(together)
    await broker.enqueueAll(together)
    await start()
    for (const [i, { id }] of tasks.entries()) {
      expect((await settled(id))?.status).toBe('completed')
      expect(await followed(id)).toEqual([10 * (i + 1)])
    }
    expect((await broker.totals(AFTER)).accepted).toBe(3)
  })

  it('a task whose input contains itself is refused', async () => {
    const { create, broker } = await openFollowed(open)
    const input: { n: number; self?: object } = { n: 1 }
    input.self = input
    await expect(broker.enqueue(create(long, input))).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('a task with more than 64 KiB of follow-ups is refused', async () => {
    const { create, broker } = await openFollowed(open)
    const large = followUp(after, { n: 1 }, { meta: { text: 'x'.repeat(256) } })
    const nested = Array.from({ length: 14 }, () => ({ ...large, onEnd: Array.from({ length: 14 }, () => large) }))
    await expect(broker.enqueue(create(long, {}, { onEnd: nested }))).rejects.toMatchObject({
      code: 'payload_too_large',
    })
  })
}
