// Conformance: pools and what they are told: to start, to stop a worker, to drain, to end with a set of tasks.

import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openStage, short } from './stage.ts'

export function pools(open: OpenBackend): void {
  it('runs as many tasks at once as it has workers, and says how many', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, settled } = await openStage(open, { handle, concurrency: 3 })
    const ids = await Promise.all(Array.from({ length: 5 }, () => enqueue(long, {})))
    const pool = await start()
    await holds(3)
    expect([pool.busy(), pool.size(), pool.state(), pool.notReady()]).toEqual([3, 3, 'BG_RUNNING', undefined])
    letGo()
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    await eventually(() => pool.busy() === 0)
    expect(pool.slots().map(({ state }) => state)).toEqual(['IDLE', 'IDLE', 'IDLE'])
  })

  it('starts once, and takes a task from its own process while it runs', async () => {
    const { pool: make, made, settled, drain } = await openStage(open)
    const pool = make()
    const [early, task, late] = [made(short, {}), made(short, {}), made(short, {})]
    await expect(pool.submit(early)).rejects.toMatchObject({ code: 'wrong_state' })
    await pool.start()
    await expect(pool.start()).rejects.toMatchObject({ code: 'wrong_state' })
    await pool.submit(task)
    expect((await settled(task.id))?.status).toBe('completed')
    await drain()
    await expect(pool.submit(late)).rejects.toMatchObject({ code: 'wrong_state' })
  })

  it('lets running tasks finish when it drains, takes no more, and leaves the rest in the queue', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, find, drain, settled, events } = await openStage(open, { handle, concurrency: 1 })
    const [running, left] = [await enqueue(long, {}), await enqueue(long, {})]
    const pool = await start()
    await holds(1)
    const drained = drain()
    expect(pool.state()).toBe('SHUTTING_DOWN')
    letGo()
    expect(await drained).toMatchObject([{ queue: 'rig', abandoned: [] }])
    expect([pool.state(), pool.busy(), pool.size()]).toEqual(['SHUTDOWN', 0, 0])
    expect((await settled(running))?.status).toBe('completed')
    expect(await find(left)).toMatchObject({ status: 'waiting', fencingToken: 0 })
    expect(events.filter(({ event }) => event === 'pool.state')).toMatchObject([
      { from: 'NEW', to: 'BG_RUNNING' },
      { from: 'BG_RUNNING', to: 'SHUTTING_DOWN' },
      { from: 'SHUTTING_DOWN', to: 'SHUTDOWN' },
    ])
  })

  it('hands back at its deadline what can not finish: to the head of the queue, no attempt used', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, idsOf, find, drain, settled } = await openStage(open, { handle, concurrency: 1 })
    const [id, next] = [await enqueue(long, {}), await enqueue(long, {})]
    await start()
    await holds(1)
    expect(await drain({ drainMs: 30 })).toMatchObject([{ queue: 'rig', abandoned: [] }])
    expect(await idsOf('waiting')).toEqual([id, next])
    expect(await find(id)).toMatchObject({
      fencingToken: 1,
      attemptsMade: 0,
      attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'drain', fencingToken: 1, counted: false }],
    })
    letGo()
    await start('test:2')
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
      attempts: [
        { reason: 'drain', counted: false },
        { state: 'DONE_SUCCESS', fencingToken: 2, attempt: 1, counted: true, worker: 'test:2' },
      ],
    })
  })

  it('counts output that comes within the grace, after a drain’s signal', async () => {
    const entered = Promise.withResolvers<void>()
    const { enqueue, start, drain, settled } = await openStage(open, {
      handle: ({ signal, input }) => {
        entered.resolve()
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ n: input.n + 1 })))
      },
    })
    const id = await enqueue(long, { n: 1 })
    await start()
    await entered.promise
    await drain({ drainMs: 10 })
    expect(await settled(id)).toMatchObject({ status: 'completed', output: { n: 2 } })
  })

  it('drains lightly: finishes what was taken without a deadline, leaves the rest, and reports', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, find, settled } = await openStage(open, { handle, concurrency: 2 })
    const running = [await enqueue(long, {}), await enqueue(long, {})]
    const left = await enqueue(long, {})
    const pool = await start()
    await holds(2)
    const drained = pool.drain({ drainMs: 'none', graceMs: 100, light: true })
    letGo()
    expect(await drained).toMatchObject({ finished: 2, requeued: 0, failed: 0, abandoned: [], unconfirmed: [] })
    for (const id of running) expect((await settled(id))?.status).toBe('completed')
    expect([(await find(left)).status, pool.state()]).toEqual(['waiting', 'SHUTDOWN'])
  })

  it('takes nothing while it is paused, and goes on when it is resumed', async () => {
    const { handle, holds, open: letGo, entered } = gate()
    const { enqueue, start, settled, reaches } = await openStage(open, { handle, concurrency: 2 })
    const pool = await start()
    const running = await enqueue(long, {})
    await holds(1)
    pool.pause()
    const waiting = await enqueue(long, {})
    letGo()
    expect((await settled(running))?.status).toBe('completed')
    // A fetch that was under way brings it, and gives it back.
    await reaches(waiting, 'waiting')
    expect([entered, pool.status().paused]).toEqual([[running], true])
    pool.resume()
    expect(await settled(waiting)).toMatchObject({ status: 'completed', fencingToken: 1, attemptsMade: 1 })
  })

  it('has more workers at once when it is resized, also while all of them are busy; and then less', async () => {
    const { handle, holds, open: letGo } = gate()
    const { enqueue, start, settled } = await openStage(open, { handle, concurrency: 1 })
    const ids = await Promise.all(Array.from({ length: 4 }, () => enqueue(long, {})))
    const pool = await start()
    await holds(1)
    pool.resize(3)
    await holds(3)
    pool.resize(1)
    expect([pool.busy(), pool.size()]).toEqual([3, 1])
    letGo()
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })

  it('names what does not end, and keeps its time', async () => {
    const entered = Promise.withResolvers<void>()
    const over = Promise.withResolvers<{ n: number }>()
    const { enqueue, start, drain } = await openStage(open, {
      handle: () => {
        entered.resolve()
        return over.promise
      },
    })
    const id = await enqueue(short, {})
    const pool = await start()
    await entered.promise
    const began = performance.now()
    expect(await drain({ drainMs: 50, graceMs: 50 })).toMatchObject([
      { queue: 'rig', abandoned: [{ id, task: 'rig.short' }] },
    ])
    expect(performance.now() - began).toBeLessThan(1_500)
    expect(pool.state()).toBe('TERMINATE_TIMEOUT')
    over.resolve({ n: 1 })
  })

  it('drains once, however often it is told, and at once when it never started', async () => {
    const { start, pool: make, drain } = await openStage(open)
    const [pool, idle] = [await start(), make('test:2')]
    const [[first], [second]] = await Promise.all([drain(), drain()])
    expect(second).toBe(first)
    expect([pool.state(), idle.state()]).toEqual(['SHUTDOWN', 'SHUTDOWN'])
  })

  it('is hurried by a second signal', async () => {
    const { handle, holds } = gate()
    const { enqueue, start } = await openStage(open, { handle })
    await enqueue(long, {})
    const pool = await start()
    await holds(1)
    const hurry = new AbortController()
    const drained = pool.drain({ drainMs: 60_000, graceMs: 2_000, hurry: hurry.signal })
    hurry.abort()
    expect(await drained).toMatchObject({ queue: 'rig', abandoned: [] })
  })

  it('drains hard, by itself, when its parent is closed', async () => {
    const { handle, holds } = gate()
    const parent = new AbortController()
    const { enqueue, start, reaches } = await openStage(open, { handle, parent: parent.signal })
    const id = await enqueue(long, {})
    const pool = await start()
    await holds(1)
    parent.abort()
    await eventually(() => pool.state() === 'SHUTDOWN')
    const end = { state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed' }
    expect(await reaches(id, 'waiting')).toMatchObject({ attemptsMade: 0, attempts: [end] })
  })

  it('lets a worker that is stopped finish its task, and goes on with the others', async () => {
    const { handle, holds, open: letGo, entered } = gate()
    const { enqueue, start, settled } = await openStage(open, { handle, concurrency: 2 })
    const ids = [await enqueue(long, {}), await enqueue(long, {}), await enqueue(long, {})]
    const pool = await start()
    await holds(2)
    const busy = pool.slots().find(({ task }) => task?.id === entered[0])?.slot ?? 0
    pool.stopSlot(busy, 'wait')
    expect(pool.size()).toBe(1)
    expect(() => pool.stopSlot(busy, 'wait')).toThrow(expect.objectContaining({ code: 'wrong_state' }))
    letGo()
    const records = await Promise.all(ids.map(settled))
    expect(records.map((record) => record?.status)).toEqual(['completed', 'completed', 'completed'])
    expect(records[2]?.attempts[0]?.slot).not.toBe(busy)
  })

  it('hands back the task of a worker that is stopped hard; another takes it', async () => {
    const { handle, holds, entered } = gate()
    const { enqueue, start, settled } = await openStage(open, {
      handle: (context) => (context.start === 1 ? handle(context) : context.input),
      concurrency: 2,
    })
    const id = await enqueue(long, {})
    const pool = await start()
    await holds(1)
    pool.stopSlot(pool.slots().find(({ task }) => task?.id === entered[0])?.slot ?? 0, 'hard')
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
      attempts: [{ state: 'TERMINATED_STOP_SIGNAL', reason: 'slot_stopped' }, { state: 'DONE_SUCCESS' }],
    })
  })

  it('takes no tasks while too many handlers go on after their attempts have ended', async () => {
    const over = Promise.withResolvers<{ n: number }>()
    const { enqueue, start, settled, find, events } = await openStage(open, {
      handle: ({ input }) => (input.n === 1 ? over.promise : input),
      concurrency: 1,
      maxStuckHandlers: 0,
    })
    const pool = await start()
    const stuck = await enqueue(long, { n: 1 }, { timeout: '30ms' })
    await eventually(() => pool.stuckHandlers() === 1)
    const next = await enqueue(long, {})
    expect(pool.notReady()).toContain('takes no tasks')
    expect((await find(next)).status).toBe('waiting')
    over.resolve({ n: 1 })
    expect((await settled(next))?.status).toBe('completed')
    expect(pool.notReady()).toBeUndefined()
    expect(events).toContainEqual(expect.objectContaining({ event: 'attempt.late', id: stuck, fencingToken: 1 }))
  })

  it('ends by itself when the tasks that it is online for have ended', async () => {
    const { enqueue, pool: make, broker, settled } = await openStage(open)
    const ids = await Promise.all([enqueue(short, { n: 1 }), enqueue(long, { n: 2 })])
    const pool = make()
    expect(await pool.online(ids, broker.waitUntilFinished)).toEqual({ state: 'ONLINE_DONE', unfinished: [] })
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    expect(pool.slots().map(({ state }) => state)).toEqual(Array.from({ length: 4 }, () => 'TERMINATED'))
  })

  it('says what is left of those tasks when it is drained before', async () => {
    const { handle, holds } = gate()
    const {
      enqueue,
      pool: make,
      broker,
      drain,
      settled,
    } = await openStage(open, {
      handle: (context) => (context.input.n === 0 ? handle(context) : context.input),
    })
    const [done, stuck] = await Promise.all([enqueue(long, { n: 1 }), enqueue(long, {})])
    const pool = make()
    const online = pool.online([done, stuck], broker.waitUntilFinished)
    await holds(1)
    await settled(done)
    await drain({ drainMs: 10 })
    expect(await online).toEqual({ state: 'INCOMPLETE_DONE', unfinished: [stuck] })
  })
}
