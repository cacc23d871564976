// Enqueueing with a unique key.
import { type CallOptions, TaskError, type TaskId, type UniqueOptions } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { idempotencyOf } from '@bullpen/engine/node'
import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { child, gate, long, openSetup, QUEUE, type SetupOptions, short } from '../setup.ts'

const HOUR_MS = 3_600_000

async function openKeys(open: OpenBackend, options: SetupOptions = {}) {
  const setup = await openSetup(open, options)
  const { create, broker } = setup
  const taskWith = (unique: Partial<UniqueOptions>, call: CallOptions = {}, n = 0): NewTask => ({
    ...create(long, { n }, { ...call, unique: { key: 'k', ...unique } }),
    caller: 'only',
  })
  return {
    ...setup,
    taskWith,
    enqueueUnique: (...args: Parameters<typeof taskWith>) => broker.enqueue(taskWith(...args)),
  }
}

export function uniqueKeys(open: OpenBackend): void {
  it('a task has its key while it is scheduled, waiting, running and retrying, and until it has ended', async () => {
    let fail = true
    const { entered, handle, open: release, holds } = gate()
    const { enqueueUnique, start, reaches, settled, broker } = await openKeys(open, {
      handle: async (context) => {
        if (fail) throw new TaskError('busy', '', { retryAfter: '2s' })
        return handle(context)
      },
    })
    const first = await enqueueUnique({}, { delay: '2s' })
    expect(first).toMatchObject({ id: first.id, action: 'created' })
    expect(await enqueueUnique({})).toEqual({ id: first.id, action: 'existing', status: 'scheduled' })
    await start()
    await reaches(first.id, 'retrying')
    expect(await enqueueUnique({})).toEqual({ id: first.id, action: 'existing', status: 'retrying' })
    fail = false
    await holds(1)
    expect(entered).toEqual([first.id])
    expect(await enqueueUnique({})).toEqual({ id: first.id, action: 'existing', status: 'active' })
    release()
    await settled(first.id)
    const second = await enqueueUnique({})
    expect(second.action).toBe('created')
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2, unaccounted: 0 })
  })

  it.each<[string, (setup: Awaited<ReturnType<typeof openKeys>>, id: TaskId) => Promise<unknown>]>([
    ['cancelled', ({ broker }, id) => broker.cancel(id, { stoppable: true })],
    [
      'cancelled by a filter',
      ({ broker }) => broker.cancelMany({ queue: QUEUE, before: Date.now(), reason: 'cancelled' }),
    ],
    ['dead', async ({ start, settled }, id) => (await start()) && settled(id)],
  ])('the key of a task that is %s is free', async (_how, end) => {
    const setup = await openKeys(open, {
      handle: () => {
        throw new TaskError('gone', '', { retryable: false })
      },
    })
    const first = await setup.enqueueUnique({})
    await end(setup, first.id)
    const second = await setup.enqueueUnique({})
    expect(second.action).toBe('created')
    expect(second.id).not.toBe(first.id)
  })

  it('the key of a task whose queue timeout has passed is free, even before the task has been ended', async () => {
    const { broker, taskWith } = await openKeys(open)
    const late = taskWith({}, { queueTimeout: '1s' })
    await broker.enqueue({ ...late, enqueuedAt: late.enqueuedAt - 2_000, expiresAt: late.enqueuedAt - 1_000 })
    expect(await broker.enqueue(taskWith({}))).toMatchObject({ action: 'created' })
  })

  it("with until 'started', the key is free once the first attempt has started, and stays free for its retries", async () => {
    const { enqueueUnique, start, reaches } = await openKeys(open, {
      concurrency: 1,
      handle: () => {
        throw new TaskError('busy', '', { retryAfter: '1h' })
      },
    })
    const first = await enqueueUnique({ until: 'started' })
    expect(await enqueueUnique({ until: 'started' })).toMatchObject({ id: first.id, action: 'existing' })
    await start()
    await reaches(first.id, 'retrying')
    expect(await enqueueUnique({ until: 'started' })).toMatchObject({ action: 'created' })
  })

  it('with a duration, the task has the key for that time, even after it has ended or was deleted', async () => {
    const { enqueueUnique, start, settled, broker } = await openKeys(open, { retention: { completed: { count: 0 } } })
    const first = await enqueueUnique({ until: '1h' })
    await start()
    await settled(first.id)
    await eventually(async () => (await broker.find(first.id)) === undefined)
    expect(await enqueueUnique({ until: '1ms' })).toEqual({ id: first.id, action: 'existing', status: undefined })
    for (const onConflict of ['replace', 'extend'] as const) {
      expect(await enqueueUnique({ onConflict }, { delay: '2h' })).toMatchObject({ id: first.id, action: 'existing' })
    }
  })

  it('with a duration, the key is free when the time has passed, even if the task has not ended', async () => {
    const { enqueueUnique } = await openKeys(open)
    const first = await enqueueUnique({ until: '30ms' })
    expect(await eventually(async () => (await enqueueUnique({ until: '1h' })).action === 'created')).toBe(true)
    const { id, action } = await enqueueUnique({ until: '1ms' })
    expect({ action, isFirst: id === first.id }).toEqual({ action: 'existing', isFirst: false })
  })

  it("on a conflict with 'error', the call is refused with the id of the task that has the key, and nothing is stored", async () => {
    const { enqueueUnique, broker } = await openKeys(open)
    const { id } = await enqueueUnique({})
    await expect(enqueueUnique({ onConflict: 'error' })).rejects.toMatchObject({ code: 'unique_key_taken', taskId: id })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1, unaccounted: 0 })
  })

  it.each([
    ['waiting', {}],
    ['waiting', { priority: 3 }],
    ['scheduled', { delay: '1h' }],
  ] as const)(
    "on a conflict with 'replace', a task that is %s (%j) is deleted, and the new one gets the key",
    async (status, call) => {
      const { enqueueUnique, broker, settled, find } = await openKeys(open)
      const first = await enqueueUnique({}, { ...call, queueTimeout: '1h' })
      expect((await find(first.id)).status).toBe(status)
      const ended = settled(first.id)
      const second = await enqueueUnique({ onConflict: 'replace' }, { delay: '2h' }, 7)
      expect(second.action).toBe('replaced')
      expect(await ended).toBeUndefined()
      expect(await broker.find(first.id)).toBeUndefined()
      expect(await find(second.id)).toMatchObject({ input: { n: 7 }, status: 'scheduled' })
      expect(await enqueueUnique({})).toEqual({ id: second.id, action: 'existing', status: 'scheduled' })
      expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2, removed: 1, unaccounted: 0, drift: 0 })
      expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 0, scheduled: 1 })
    },
  )

  it("on a conflict with 'replace', a task that has started is kept, even while it waits for its next attempt", async () => {
    const { enqueueUnique, start, reaches } = await openKeys(open, {
      handle: ({ snooze }) => snooze('1h'),
    })
    const first = await enqueueUnique({})
    await start()
    await reaches(first.id, 'scheduled')
    for (const onConflict of ['replace', 'extend'] as const) {
      const answer = await enqueueUnique({ onConflict }, { delay: '2h' })
      expect(answer).toEqual({ id: first.id, action: 'existing', status: 'scheduled' })
    }
  })

  it("on a conflict with 'extend', the start of a scheduled task and its queue timeout are postponed", async () => {
    const { enqueueUnique, find, expired, broker } = await openKeys(open, { locks: 'quick' })
    const first = await enqueueUnique({}, { delay: '2s', queueTimeout: '1ms' }, 1)
    const before = Date.now()
    const answer = await enqueueUnique({ onConflict: 'extend' }, { delay: '1h' }, 2)
    expect(answer).toMatchObject({ id: first.id, action: 'extended', status: 'scheduled' })
    const { dueAt = 0, input } = await find(first.id)
    expect(dueAt).toBeGreaterThanOrEqual(before + HOUR_MS)
    expect(dueAt).toBeLessThanOrEqual(Date.now() + HOUR_MS)
    expect(input).toEqual({ n: 1 })
    // A task that expires later shows that the leader has looked.
    const other = await enqueueUnique({ key: 'other' }, { delay: '2s', queueTimeout: '1ms' })
    await eventually(() => expired.includes(other.id))
    expect(expired).toEqual([other.id])
    expect((await find(first.id)).status).toBe('scheduled')
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2, unaccounted: 0 })
  })

  it('a task that was postponed starts at its new time, and its queue timeout begins then', async () => {
    const { enqueueUnique, start, settled, find } = await openKeys(open)
    const first = await enqueueUnique({}, { delay: '2s', queueTimeout: '3s' })
    await enqueueUnique({ onConflict: 'extend' }, { delay: '6s' })
    const { dueAt = 0 } = await find(first.id)
    await start()
    const ended = await settled(first.id)
    expect(ended).toMatchObject({ status: 'completed', attemptsMade: 1 })
    expect(ended?.startedAt).toBeGreaterThanOrEqual(dueAt - 1)
  })

  it("with 'extend', a task never starts earlier, a waiting task is kept, and none is postponed past the total timeout", async () => {
    const { enqueueUnique, taskWith, broker, find } = await openKeys(open)
    const created = taskWith({}, { delay: '1h' })
    const first = await broker.enqueue({ ...created, enqueuedAt: created.enqueuedAt - 5 * 60_000 })
    const { dueAt } = await find(first.id)
    const kept = { id: first.id, action: 'existing', status: 'scheduled' }
    expect(await enqueueUnique({ onConflict: 'extend' }, { delay: '50m' })).toEqual(kept)
    const total = { timeout: '1m', totalTimeout: '90m' } as const
    expect(await enqueueUnique({ onConflict: 'extend' }, { ...total, delay: '88m' })).toEqual(kept)
    expect((await find(first.id)).dueAt).toBe(dueAt)
    expect(await enqueueUnique({ onConflict: 'extend' }, { ...total, delay: '80m' })).toMatchObject({
      action: 'extended',
    })
    const waiting = await enqueueUnique({ key: 'other' })
    expect(await enqueueUnique({ key: 'other', onConflict: 'extend' }, { delay: '1h' })).toEqual({
      id: waiting.id,
      action: 'existing',
      status: 'waiting',
    })
  })

  it("with 'extend' and durations, the time of the key begins again", async () => {
    const { enqueueUnique } = await openKeys(open)
    const first = await enqueueUnique({ until: '1h' }, { delay: '1h' })
    const again = await enqueueUnique({ until: '1ms', onConflict: 'extend' }, { delay: '2h' })
    expect(again).toMatchObject({ id: first.id, action: 'extended' })
    expect(await eventually(async () => (await enqueueUnique({})).action === 'created')).toBe(true)
  })

  it('tasks of another definition, and tasks with another key or without one, are not affected', async () => {
    const { create, broker, enqueueUnique } = await openKeys(open)
    const keys = ['k', 'K', 'k ', ' k', 'k\n', 'ä', '.*', 'f k', 'x'.repeat(128)]
    for (const key of keys) expect(await enqueueUnique({ key })).toMatchObject({ action: 'created' })
    for (const key of keys) expect(await enqueueUnique({ key })).toMatchObject({ action: 'existing' })
    const other = create(short, {}, { unique: { key: 'k' } })
    expect(await broker.enqueue(other)).toMatchObject({ id: other.id, action: 'created' })
    const plain = create(long, {})
    expect(await broker.enqueue(plain)).toMatchObject({ id: plain.id, action: 'created' })
  })

  it('of many concurrent calls with the same key, one creates the task, and all get its id', async () => {
    const { enqueueUnique, broker } = await openKeys(open)
    const answers = await Promise.all(Array.from({ length: 50 }, () => enqueueUnique({})))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(answers.filter(({ action }) => action === 'created')).toHaveLength(1)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 1 })
  })

  it('a full queue lets a task replace another one, and returns the task that has the key', async () => {
    const { broker, taskWith } = await openKeys(open)
    const limits = { maxTasks: 1 }
    const enqueueLimited = (unique: Partial<UniqueOptions>) => broker.enqueue({ ...taskWith(unique), limits })
    const first = await enqueueLimited({})
    expect(await enqueueLimited({})).toMatchObject({ id: first.id, action: 'existing' })
    await expect(enqueueLimited({ key: 'other' })).rejects.toMatchObject({ code: 'queue_full' })
    expect(await enqueueLimited({ onConflict: 'replace' })).toMatchObject({ action: 'replaced' })
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2, removed: 1, unaccounted: 0 })
  })

  it('a call that is sent again with its own id gets the same action', async () => {
    const { broker, taskWith } = await openKeys(open)
    const [first, second] = [taskWith({}), taskWith({ onConflict: 'replace' })]
    for (const _ of [1, 2]) expect(await broker.enqueue(first)).toMatchObject({ id: first.id, action: 'created' })
    for (const _ of [1, 2]) expect(await broker.enqueue(second)).toMatchObject({ id: second.id, action: 'replaced' })
  })

  it.each([
    ['keep', 'created'],
    ['replace', 'replaced'],
  ] as const)(
    "a call with '%s' that is sent again with its own id after its task was replaced gets the same action, and changes nothing",
    async (onConflict, action) => {
      const { broker, taskWith, enqueueUnique, idsOf } = await openKeys(open)
      if (action === 'replaced') await enqueueUnique({})
      const task = taskWith({ onConflict })
      expect(await broker.enqueue(task)).toMatchObject({ id: task.id, action })
      const newer = await enqueueUnique({ onConflict: 'replace' })
      const before = await broker.totals(QUEUE)
      expect(await broker.enqueue(task)).toEqual({ id: task.id, action })
      expect(await idsOf('waiting')).toEqual([newer.id])
      expect(await broker.totals(QUEUE)).toEqual(before)
    },
  )

  it('a call that is sent again after its task has ended and was deleted gets the same action, and changes nothing', async () => {
    const { broker, taskWith, enqueueUnique, start, drain, idsOf } = await openKeys(open, {
      retention: { completed: { count: 0 } },
    })
    const task = taskWith({})
    expect(await broker.enqueue(task)).toMatchObject({ id: task.id, action: 'created' })
    await start()
    await eventually(async () => (await broker.find(task.id)) === undefined)
    await drain()
    const newer = await enqueueUnique({})
    expect(await broker.enqueue({ ...task, unique: { ...task.unique, onConflict: 'replace' } } as NewTask)).toEqual({
      id: task.id,
      action: 'created',
    })
    expect(await idsOf('waiting')).toEqual([newer.id])
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 2, removed: 1 })
  })

  it('an idempotency key remembers what happened to the unique key, also when the other task has ended', async () => {
    const { broker, taskWith, enqueueUnique } = await openKeys(open)
    const idempotency = (key: string) => idempotencyOf({ key, caller: 'ann', request: '', life: 86_400 })
    const repeated =
      (key: string, ...args: Parameters<typeof taskWith>) =>
      () =>
        broker.enqueue({ ...taskWith(...args), idempotency: idempotency(key) })
    const first = await enqueueUnique({}, { delay: '1h' })
    const calls = [
      repeated('keep', {}),
      repeated('extend', { onConflict: 'extend' }, { delay: '2h' }),
      repeated('replace', { onConflict: 'replace' }),
      repeated('refuse', { onConflict: 'error' }),
    ] as const
    const [keep, extend, replace, refuse] = calls
    expect(await keep()).toEqual({ id: first.id, action: 'existing', status: 'scheduled' })
    expect(await extend()).toMatchObject({ id: first.id, action: 'extended', status: 'scheduled' })
    const second = await replace()
    expect(second.action).toBe('replaced')
    await expect(refuse()).rejects.toMatchObject({ code: 'unique_key_taken' })
    await broker.cancel(second.id, { stoppable: true })
    const replayed = { status: 'scheduled' }
    expect(await keep()).toEqual({ id: first.id, action: 'existing', replayed })
    expect(await extend()).toMatchObject({ id: first.id, action: 'extended', replayed })
    expect(await replace()).toEqual({ ...second, replayed: { status: 'waiting' } })
    // A refusal is not remembered.
    expect(await refuse()).toMatchObject({ action: 'created' })
  })

  it('a child task may have a unique key', async () => {
    const answers: unknown[] = []
    const { enqueue, start, settled, events } = await openKeys(open, {
      handle: async ({ enqueue, input }) => {
        if (input.n === 0) return input
        const unique = { key: 'child', until: '1h' } as const
        answers.push(await enqueue(child, { n: 0 }, { unique, childKey: 'a' }))
        answers.push(await enqueue(child, { n: 0 }, { unique, childKey: 'b' }))
        return input
      },
    })
    await start()
    await settled(await enqueue(long, { n: 1 }))
    const [created] = answers as { id: TaskId }[]
    expect(answers).toMatchObject([{ action: 'created' }, { id: created?.id, action: 'existing' }])
    expect(events.filter(({ event }) => event === 'task.enqueued')).toMatchObject([{ id: created?.id }])
  })
}
