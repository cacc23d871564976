// Tests that every broker lists tasks, counts them, and waits for them to end.
import { isFinal, TaskError, type TaskId, type TaskRecord, type TaskStatus } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openSetup, QUEUE, short } from './setup.ts'

export function listings(open: OpenBackend): void {
  it('waiting tasks are listed in the order in which they will run, each once over all pages', async () => {
    const { enqueue, idsOf } = await openSetup(open)
    const ids: string[] = []
    for (let n = 0; n < 23; n++) ids.push(await enqueue(short, { n }))
    expect(await idsOf('waiting', 5)).toEqual(ids)
    expect(await idsOf('waiting', 23)).toEqual(ids)
  })

  it('no waiting task is missed when others start between two pages', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, broker } = await openSetup(open, { handle, concurrency: 6 })
    const ids: string[] = []
    for (let n = 0; n < 30; n++) ids.push(await enqueue(long, {}))
    const page = async (cursor: string | undefined) => {
      const { tasks, next } = await broker.list({ queue: QUEUE, status: 'waiting', limit: 10, cursor })
      return { shown: tasks.map(({ id }) => id), next }
    }
    const { next } = await page(undefined)
    await start('test:1')
    await holds(6)
    expect((await page(next)).shown).toEqual(ids.slice(10, 20))
    // By now the last task of the first page has started, too.
    await start('test:2')
    await holds(12)
    expect((await page(next)).shown).toEqual(ids.slice(12, 22))
    release()
  })

  it('waiting tasks run in the order of the listing', async () => {
    const ran: string[] = []
    const { enqueue, start, settled } = await openSetup(open, {
      concurrency: 1,
      handle: ({ id, input }) => {
        ran.push(id)
        return input
      },
    })
    const ids = []
    for (let n = 0; n < 10; n++) ids.push(await enqueue(short, {}))
    await start()
    for (const id of ids) await settled(id)
    expect(ran).toEqual(ids)
  })

  it.each([7, 50])(
    'ended tasks are listed once each, %i per page, although many ended in the same millisecond',
    async (limit) => {
      const { enqueue, idsOf, start, settled } = await openSetup(open, { concurrency: 50 })
      const ids = await Promise.all(Array.from({ length: 40 }, () => enqueue(short, {})))
      await start()
      for (const id of ids) await settled(id)
      expect((await idsOf('completed', limit)).toSorted()).toEqual(ids.toSorted())
    },
  )

  it('scheduled tasks that stay are listed once each, though others leave between the pages', async () => {
    const { create, enqueueTask, broker } = await openSetup(open)
    const enqueuedAt = Date.now()
    const plan = fc.record({
      tasks: fc.integer({ min: 1, max: 20 }),
      limit: fc.integer({ min: 1, max: 6 }),
      // For each page, which of its tasks leave, counted from its last one, and how many tasks are added.
      leaving: fc.array(fc.subarray([0, 1, 4]), { minLength: 20, maxLength: 20 }),
      added: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 20, maxLength: 20 }),
    })
    for (const { tasks, limit, leaving, added } of fc.sample(plan, 10)) {
      // All are due at the same time.
      const add = () => enqueueTask({ ...create(long, {}, { delay: '1h' }), enqueuedAt })
      const staying = new Set<TaskId>()
      for (let n = 0; n < tasks; n++) staying.add(await add())
      const all = new Set(staying)
      const listed: TaskId[] = []
      let cursor: string | undefined
      let pages = 0
      do {
        const page = await broker.list({ queue: QUEUE, status: 'scheduled', limit, cursor })
        const shown = page.tasks.map(({ id }) => id)
        listed.push(...shown)
        cursor = page.next
        for (const fromLast of leaving[pages] ?? []) {
          const id = shown.at(-1 - fromLast)
          if (id === undefined) continue
          await broker.cancel(id, { stoppable: true })
          staying.delete(id)
        }
        for (let n = 0; n < (added[pages] ?? 0); n++) all.add(await add())
        pages++
      } while (cursor !== undefined)
      expect(new Set(listed).size).toBe(listed.length)
      expect(listed.filter((id) => staying.has(id)).toSorted()).toEqual([...staying].toSorted())
      for (const id of all) await broker.cancel(id, { stoppable: true })
    }
  })

  it('each status has a listing of its own', async () => {
    const { handle, holds } = gate()
    const { enqueue, create, enqueueTask, idsOf, start, reaches, settled, broker } = await openSetup(open, {
      handle: (context) => {
        if (context.input.n === 1) throw new TaskError('busy', '', { retryAfter: '1h' })
        if (context.input.n === 2) throw new TaskError('gone', '', { retryable: false })
        return handle(context)
      },
    })
    const scheduled = await enqueue(short, {}, { delay: '1m' })
    const [retrying, dead, cancelled] = [
      await enqueue(long, { n: 1 }),
      await enqueue(long, { n: 2 }),
      await enqueue(long, {}),
    ]
    const late = create(long, {}, { queueTimeout: '50ms' })
    const expired = await enqueueTask({ ...late, enqueuedAt: late.enqueuedAt - 51, expiresAt: undefined })
    const pool = await start()
    await holds(1)
    expect(await idsOf('active')).toEqual([cancelled])
    pool.cancel(cancelled)
    await Promise.all([reaches(retrying, 'retrying'), settled(dead), settled(cancelled), settled(expired)])
    const found = Object.fromEntries(
      await Promise.all(TASK_STATUSES.map(async (status) => [status, await idsOf(status)])),
    )
    expect(found).toEqual({
      scheduled: [scheduled],
      waiting: [],
      active: [],
      retrying: [retrying],
      completed: [],
      dead: [dead],
      cancelled: [cancelled],
      expired: [expired],
    })
    const counts = { waiting: 0, active: 0, scheduled: 1, retrying: 1, completed: 0, dead: 1, cancelled: 1, expired: 1 }
    expect(await broker.counts(QUEUE)).toEqual(counts)
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 5, removed: 0, drift: 0, unaccounted: 0 })
  })

  it('every page of every status is full except for the last one, and each task is listed and counted once', async () => {
    const { handle, holds, open: release } = gate()
    const each = 12
    const { enqueue, create, enqueueTask, start, settled, reaches, broker } = await openSetup(open, {
      concurrency: each,
      handle: (context) => {
        const { n } = context.input
        if (n === 1) throw new TaskError('busy', '', { retryAfter: '1h' })
        if (n === 2) throw new TaskError('gone', '', { retryable: false })
        return n === 3 ? context.input : handle(context)
      },
    })
    const ids = Object.fromEntries(TASK_STATUSES.map((status) => [status, [] as TaskId[]])) as Record<
      TaskStatus,
      TaskId[]
    >
    // The statuses that share a place in Redis are interleaved.
    for (let i = 0; i < each; i++) {
      ids.cancelled.push(await enqueue(long, {}))
      await broker.cancel(ids.cancelled[i] ?? ('' as TaskId), { stoppable: true })
      ids.retrying.push(await enqueue(long, { n: 1 }))
      ids.dead.push(await enqueue(long, { n: 2 }))
      ids.completed.push(await enqueue(long, { n: 3 }))
      ids.scheduled.push(await enqueue(short, {}, { delay: `${50 + i}m` }))
      const late = create(long, {}, { queueTimeout: '50ms' })
      ids.expired.push(await enqueueTask({ ...late, enqueuedAt: late.enqueuedAt - 51, expiresAt: undefined }))
    }
    await start()
    for (const id of [...ids.dead, ...ids.completed, ...ids.expired]) await settled(id)
    for (const id of ids.retrying) await reaches(id, 'retrying')
    for (let i = 0; i < each; i++) ids.active.push(await enqueue(long, {}))
    await holds(each)
    for (let i = 0; i < each; i++) ids.waiting.push(await enqueue(long, {}))
    expect(await broker.counts(QUEUE)).toEqual(Object.fromEntries(TASK_STATUSES.map((status) => [status, each])))
    expect(await broker.totals(QUEUE)).toMatchObject({ accepted: 8 * each, removed: 0, unaccounted: 0 })
    for (const status of TASK_STATUSES) {
      const pages: TaskRecord[][] = []
      let cursor: string | undefined
      do {
        const page = await broker.list({ queue: QUEUE, status, limit: 5, cursor })
        pages.push([...page.tasks])
        cursor = page.next
      } while (cursor !== undefined)
      expect(pages.map(({ length }) => length)).toEqual([5, 5, 2])
      const listed = pages.flat()
      expect(new Set(listed.map((task) => task.status))).toEqual(new Set([status]))
      expect(listed.map(({ id }) => id).toSorted()).toEqual(ids[status].toSorted())
      const times = listed.map(({ dueAt, endedAt }) => dueAt ?? endedAt ?? 0)
      // Ended tasks are listed from the newest to the oldest.
      expect(times).toEqual(times.toSorted((a, b) => (isFinal(status) ? b - a : a - b)))
    }
    release()
  })

  it('the listings of an empty queue are empty, and an unknown queue is refused', async () => {
    const { broker, idsOf } = await openSetup(open)
    for (const status of TASK_STATUSES) expect(await idsOf(status)).toEqual([])
    const elsewhere = { queue: 'unknown', status: 'waiting', limit: 1, cursor: undefined } as const
    await expect(broker.list(elsewhere)).rejects.toMatchObject({ code: 'queue_not_found' })
    await expect(broker.counts('unknown')).rejects.toMatchObject({ code: 'queue_not_found' })
  })

  it.each(['', 'x', 'e30', Buffer.from('null').toString('base64url')])(
    'the cursor %j is refused, and so is the cursor of another listing',
    async (cursor) => {
      const { broker, enqueue } = await openSetup(open)
      const wrong = { code: 'invalid_cursor' }
      const list = (status: 'waiting' | 'dead', from: string | undefined) =>
        broker.list({ queue: QUEUE, status, limit: 1, cursor: from })
      await expect(list('waiting', cursor)).rejects.toMatchObject(wrong)
      for (let n = 0; n < 2; n++) await enqueue(short, {})
      const { next } = await list('waiting', undefined)
      await expect(list('dead', next)).rejects.toMatchObject(wrong)
    },
  )

  it('waiting for a task resolves, whether it ends before, while or after the wait begins', async () => {
    const { enqueue, start, settled } = await openSetup(open)
    await start()
    const waits = Array.from({ length: 100 }, async (_, n) => settled(await enqueue(short, { n })))
    const outputs = (await Promise.all(waits)).map((record) => record?.output)
    expect(outputs).toEqual(Array.from({ length: 100 }, (_, n) => ({ n })))
  })

  it('a wait that is aborted resolves with the current task', async () => {
    const { enqueue, broker } = await openSetup(open)
    const id = await enqueue(short, {})
    expect((await broker.waitUntilFinished(id, AbortSignal.timeout(30)))?.status).toBe('waiting')
    expect((await broker.waitUntilFinished(id, AbortSignal.abort()))?.status).toBe('waiting')
  })

  it('a ping resolves', async () => {
    const { broker } = await openSetup(open)
    await expect(broker.ping()).resolves.toBeUndefined()
  })
}
