// Tests a task's record from enqueueing to the end.
import { TaskError } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { expectAbout, long, openSetup, plain, QUEUE, SIZE_LIMIT, short } from './setup.ts'

export function records(open: OpenBackend): void {
  it('a waiting task has everything that the caller enqueued', async () => {
    const { create, enqueueTask, find } = await openSetup(open)
    const id = await enqueueTask({
      ...create(
        long,
        { n: 5 },
        { meta: { tenant: 'a' }, concurrencyKey: 'tenant-a', priority: 2, retry: { maxAttempts: 2 } },
      ),
      correlationId: 'c-1',
      traceContext: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' },
      enqueuedAt: 1_700_000_000_000,
    })
    expect(await find(id)).toEqual({
      id,
      task: 'conformance.long',
      version: 1,
      queue: QUEUE,
      status: 'waiting',
      fencingToken: 0,
      attemptsMade: 0,
      maxAttempts: 2,
      priority: 2,
      input: { n: 5 },
      tags: [],
      meta: { tenant: 'a' },
      correlationId: 'c-1',
      traceContext: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' },
      concurrencyKey: 'tenant-a',
      waitsFor: { kind: 'turn', ahead: 0 },
      enqueuedAt: 1_700_000_000_000,
      dueAt: undefined,
      startedAt: undefined,
      endedAt: undefined,
      progress: undefined,
      output: undefined,
      attempts: [],
    })
  })

  it('a delayed task is scheduled, and due when its delay ends', async () => {
    const { create, enqueueTask, find } = await openSetup(open)
    const task = create(short, {}, { delay: '1m' })
    expect(await find(await enqueueTask(task))).toMatchObject({ status: 'scheduled', dueAt: task.enqueuedAt + 60_000 })
  })

  it('a delayed task starts when its delay is over, and its wait is counted from then', async () => {
    const { enqueue, start, settled, events } = await openSetup(open)
    await start()
    const record = await settled(await enqueue(short, {}, { delay: '30ms' }))
    expect(record?.status).toBe('completed')
    expect((record?.startedAt ?? 0) - (record?.enqueuedAt ?? 0)).toBeGreaterThanOrEqual(29)
    const waited = events.flatMap((event) => (event.event === 'attempt.started' ? [event.waitedMs ?? -1] : []))
    expect(waited).toEqual([expect.closeTo(0, -5)])
  })

  it('only the first attempt has waited for its start, and the end of the task is timed from its enqueueing', async () => {
    const { enqueue, start, settled, events } = await openSetup(open, {
      handle({ fencingToken, snooze, input }) {
        if (fencingToken === 1) return snooze('1ms')
        if (fencingToken === 2) throw new TaskError('busy', 'not now', { retryAfter: '20ms' })
        return input
      },
    })
    await start()
    const record = await settled(
      await enqueue(long, {}, { retry: { maxAttempts: 2, backoff: { initialDelay: '20ms' } } }),
    )
    expect(record).toMatchObject({ status: 'completed', fencingToken: 3 })
    const waited = events.flatMap((event) => (event.event === 'attempt.started' ? [event.waitedMs] : []))
    expect(waited).toEqual([expect.any(Number), undefined, undefined])
    await eventually(() => events.filter(({ event }) => event === 'attempt.ended').length === 3)
    const taskMs = events.flatMap((event) => (event.event === 'attempt.ended' ? [event.taskMs] : []))
    expect(taskMs).toEqual([undefined, undefined, expect.any(Number)])
    // The retry waits for 20 ms. The attempt ends before its verdict is stored, and clocks are read in whole milliseconds.
    expect(taskMs[2]).toBeGreaterThanOrEqual(18)
    expect(taskMs[2]).toBeLessThanOrEqual((record?.endedAt ?? 0) - (record?.enqueuedAt ?? 0) + 2)
  })

  it('a task with a start time is scheduled for it, and one whose start time has passed is waiting', async () => {
    const { create, enqueueTask, find } = await openSetup(open)
    const runAt = new Date(Date.now() + 60_000)
    const later = await find(await enqueueTask(create(short, {}, { runAt })))
    expect(later).toMatchObject({ status: 'scheduled', dueAt: runAt.getTime() })
    const past = await find(await enqueueTask(create(short, {}, { runAt: '2020-01-01T00:00:00+01:00' })))
    expect(past).toMatchObject({ status: 'waiting', dueAt: undefined })
  })

  it('a task is active with its progress, then completed with its output and attempt record', async () => {
    const over = Promise.withResolvers<void>()
    const { enqueue, start, settled, reaches } = await openSetup(open, {
      handle: async ({ input, progress }) => {
        await progress(0.25, 'a quarter')
        await over.promise
        return input
      },
    })
    const id = await enqueue(long, { n: 3 })
    await start()
    const active = await eventually(async () => {
      const record = await reaches(id, 'active')
      return record.progress !== undefined && record
    })
    expect(active).toMatchObject({
      fencingToken: 1,
      attemptsMade: 0,
      progress: { fraction: 0.25, note: 'a quarter' },
      attempts: [],
    })
    expect(active.startedAt).toBeGreaterThan(0)
    over.resolve()
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      output: { n: 3 },
      progress: undefined,
      fencingToken: 1,
      attemptsMade: 1,
      endedAt: expect.any(Number),
      attempts: [{ state: 'DONE_SUCCESS', fencingToken: 1, attempt: 1, worker: 'test:1', slot: expect.any(Number) }],
    })
  })

  it('a failing task is retrying between attempts, then dead with every attempt record', async () => {
    const { enqueue, start, reaches, settled } = await openSetup(open, {
      handle: ({ attempt }) => {
        throw attempt === 1 ? new TaskError('busy', 'not now', { retryAfter: '2s' }) : new Error('broken')
      },
    })
    const id = await enqueue(long, {})
    await start()
    const retrying = await reaches(id, 'retrying')
    expect(retrying).toMatchObject({
      attemptsMade: 1,
      attempts: [{ state: 'DONE_ERROR', code: 'busy', message: 'not now' }],
    })
    expectAbout((retrying.dueAt ?? 0) - (retrying.attempts[0]?.endedAt ?? 0), 2_000)
    expect(await settled(id)).toMatchObject({
      status: 'dead',
      fencingToken: 3,
      attemptsMade: 3,
      dueAt: undefined,
      output: undefined,
      attempts: [
        { attempt: 1, state: 'DONE_ERROR', code: 'busy' },
        { attempt: 2, state: 'RECOVER_ERR', reason: 'unexpected_error', message: 'Error: broken' },
        { attempt: 3, state: 'RECOVER_ERR' },
      ],
    })
  })

  it('the ten newest attempt records are stored', async () => {
    const { enqueue, start, settled } = await openSetup(open, {
      handle: ({ fencingToken: number, snooze, input }) => (number < 12 ? snooze('1ms') : input),
    })
    await start()
    const record = await settled(await enqueue(short, {}))
    expect(record).toMatchObject({ status: 'completed', fencingToken: 12, attemptsMade: 1 })
    expect(record?.attempts.map(({ fencingToken: number }) => number)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })

  it('input and output are stored as JSON', async () => {
    const at = new Date(0)
    const { enqueue, start, settled } = await openSetup(open, {
      handle: ({ input }) => ({ input, at, gone: undefined, not: Number.NaN, list: [undefined] }),
    })
    await start()
    const record = await settled(await enqueue(plain, { at, gone: undefined }))
    const stored = { at: '1970-01-01T00:00:00.000Z' }
    expect(record?.input).toEqual(stored)
    expect(record?.output).toEqual({ input: stored, ...stored, not: null, list: [null] })
    expect(Object.keys(record?.input as object)).toEqual(['at'])
  })

  it('a task may have neither input nor output', async () => {
    const { enqueue, start, settled } = await openSetup(open, { handle: () => undefined })
    await start()
    const record = await settled(await enqueue(plain, undefined))
    expect(record).toMatchObject({ status: 'completed', input: undefined, output: undefined })
  })

  it.each([
    ['waiting', {}],
    ['scheduled', { delay: '1h' }],
  ] as const)('enqueueing the id of a %s task again changes nothing and answers existing', async (status, call) => {
    const { create, broker, find } = await openSetup(open)
    const task = create(long, { n: 1 }, { ...call, tags: ['first'], queueTimeout: '1h' })
    const { id } = task
    expect(await broker.enqueue(task)).toMatchObject({ id, action: 'created' })
    const before = await find(id)
    const again = { ...task, input: { n: 2 }, tags: ['second'], delayMs: 5, expiresAt: task.enqueuedAt, enqueuedAt: 1 }
    expect(await broker.enqueue(again)).toEqual({ id, action: 'existing' })
    expect(await find(id)).toEqual(before)
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 0, scheduled: 0, [status]: 1 })
  })

  it('enqueueing the id of a task that has ended answers existing, and the task does not run again', async () => {
    const { create, broker, settled, start, find } = await openSetup(open)
    await start()
    const task = create(short, { n: 1 })
    await broker.enqueue(task)
    const ended = await settled(task.id)
    expect(await broker.enqueue(task)).toEqual({ id: task.id, action: 'existing' })
    expect(await find(task.id)).toEqual(ended)
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 0, active: 0, completed: 1 })
  })

  it('of concurrent callers with the same id, one creates the task', async () => {
    const { create, broker } = await openSetup(open)
    const task = create(short, { n: 1 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => broker.enqueue(task)))
    expect(answers.filter(({ action }) => action === 'created')).toHaveLength(1)
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 1 })
  })

  it.each([
    ['only', 'created'],
    [{ token: '1' }, 'created'],
    [{ token: '2' }, 'existing'],
    [undefined, 'existing'],
  ] as const)(
    'enqueueing the id of a task again for the caller %j changes nothing and answers %s',
    async (caller, action) => {
      const { create, broker, find } = await openSetup(open)
      const task = { ...create(long, { n: 1 }), caller: { token: '1' } }
      expect(await broker.enqueue(task)).toMatchObject({ action: 'created' })
      const before = await find(task.id)
      const again = { ...task, caller, input: { n: 2 }, isRepeat: true }
      expect(await broker.enqueue(again)).toEqual({ id: task.id, action })
      expect(await find(task.id)).toEqual(before)
      expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1 })
    },
  )

  it('a task that is too large or whose queue is unknown is refused, and not stored', async () => {
    const { enqueue, create, enqueueTask, broker } = await openSetup(open)
    await expect(enqueue(plain, 'x'.repeat(SIZE_LIMIT))).rejects.toMatchObject({ code: 'payload_too_large' })
    await expect(enqueueTask({ ...create(short, {}), queue: 'unknown' })).rejects.toMatchObject({
      code: 'queue_not_found',
    })
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 0 })
  })

  it('an id that was never enqueued is not found, nor one of an unknown queue', async () => {
    const { broker } = await openSetup(open)
    for (const queue of [QUEUE, 'elsewhere']) {
      const id = createTaskId(queue, 1, new Uint8Array(10))
      expect(await broker.find(id)).toBeUndefined()
      expect(await broker.waitUntilFinished(id, AbortSignal.timeout(1_000))).toBeUndefined()
    }
  })
}
