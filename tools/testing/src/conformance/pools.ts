// Tests what a pool does when it is started, paused, resized or drained, or when a slot is stopped.

import { eventually } from '@bullpen/testkit'
import { expect, it } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { gate, long, openSetup, QUEUE, short } from './setup.ts'

export function pools(open: OpenBackend): void {
  it('a pool runs as many tasks at once as it has slots', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, settled } = await openSetup(open, { handle, concurrency: 3 })
    const ids = await Promise.all(Array.from({ length: 5 }, () => enqueue(long, {})))
    const pool = await start()
    await holds(3)
    expect({ busy: pool.busy(), size: pool.size(), state: pool.state(), notReady: pool.notReady() }).toEqual({
      busy: 3,
      size: 3,
      state: 'BG_RUNNING',
      notReady: undefined,
    })
    release()
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    await eventually(() => pool.busy() === 0)
    expect(pool.slots().map(({ state }) => state)).toEqual(['IDLE', 'IDLE', 'IDLE'])
  })

  it('a pool starts once, and goes on when a second start is refused', async () => {
    const { pool: make, enqueue, settled } = await openSetup(open)
    const pool = make()
    await pool.start()
    await expect(pool.start()).rejects.toMatchObject({ code: 'wrong_state' })
    expect((await settled(await enqueue(short, {})))?.status).toBe('completed')
  })

  it('a drain lets running tasks finish, starts no more, and leaves the others in the queue', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, find, drain, settled, events } = await openSetup(open, { handle, concurrency: 1 })
    const [running, left] = [await enqueue(long, {}), await enqueue(long, {})]
    const pool = await start()
    await holds(1)
    const drained = drain()
    expect(pool.state()).toBe('SHUTTING_DOWN')
    release()
    expect(await drained).toMatchObject([{ queue: QUEUE, abandoned: [] }])
    expect([pool.state(), pool.busy(), pool.size()]).toEqual(['SHUTDOWN', 0, 0])
    expect((await settled(running))?.status).toBe('completed')
    expect(await find(left)).toMatchObject({ status: 'waiting', fencingToken: 0 })
    expect(events.filter(({ event }) => event === 'pool.state')).toMatchObject([
      { from: 'NEW', to: 'BG_RUNNING' },
      { from: 'BG_RUNNING', to: 'SHUTTING_DOWN' },
      { from: 'SHUTTING_DOWN', to: 'SHUTDOWN' },
    ])
  })

  it('a drain that times out requeues running tasks at the head of the queue, without using an attempt', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, idsOf, find, drain, settled } = await openSetup(open, { handle, concurrency: 1 })
    const [id, next] = [await enqueue(long, {}), await enqueue(long, {})]
    await start()
    await holds(1)
    expect(await drain({ drainMs: 30 })).toMatchObject([{ queue: QUEUE, abandoned: [] }])
    expect(await idsOf('waiting')).toEqual([id, next])
    expect(await find(id)).toMatchObject({
      fencingToken: 1,
      attemptsMade: 0,
      attempts: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'drain', fencingToken: 1, counted: false }],
    })
    release()
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

  it('output within the grace period counts after the signal of a drain', async () => {
    const entered = Promise.withResolvers<void>()
    const { enqueue, start, drain, settled } = await openSetup(open, {
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

  it('a light drain finishes fetched tasks without a deadline, and leaves the others', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, find, settled } = await openSetup(open, { handle, concurrency: 2 })
    const running = [await enqueue(long, {}), await enqueue(long, {})]
    const left = await enqueue(long, {})
    const pool = await start()
    await holds(2)
    const drained = pool.drain({ drainMs: 'none', graceMs: 100, light: true })
    release()
    expect(await drained).toMatchObject({ finished: 2, requeued: 0, failed: 0, abandoned: [], unconfirmed: [] })
    for (const id of running) expect((await settled(id))?.status).toBe('completed')
    expect([(await find(left)).status, pool.state()]).toEqual(['waiting', 'SHUTDOWN'])
  })

  it('a paused pool starts nothing until it is resumed', async () => {
    const { handle, holds, open: release, entered } = gate()
    const { enqueue, start, settled, reaches } = await openSetup(open, { handle, concurrency: 2 })
    const pool = await start()
    const running = await enqueue(long, {})
    await holds(1)
    pool.pause()
    const waiting = await enqueue(long, {})
    release()
    expect((await settled(running))?.status).toBe('completed')
    // A fetch that was in progress may return the task, which the pool then releases.
    await reaches(waiting, 'waiting')
    expect([entered, pool.status().paused]).toEqual([[running], true])
    pool.resume()
    expect(await settled(waiting)).toMatchObject({ status: 'completed', fencingToken: 1, attemptsMade: 1 })
  })

  it('resize adds slots at once, also while all are busy, and removes them as they become idle', async () => {
    const { handle, holds, open: release } = gate()
    const { enqueue, start, settled } = await openSetup(open, { handle, concurrency: 1 })
    const ids = await Promise.all(Array.from({ length: 4 }, () => enqueue(long, {})))
    const pool = await start()
    await holds(1)
    pool.resize(3)
    await holds(3)
    pool.resize(1)
    expect([pool.busy(), pool.size()]).toEqual([3, 1])
    release()
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })

  it('a drain abandons and names a task that does not end', async () => {
    const entered = Promise.withResolvers<void>()
    const over = Promise.withResolvers<{ n: number }>()
    const { enqueue, start, drain } = await openSetup(open, {
      handle: () => {
        entered.resolve()
        return over.promise
      },
    })
    const id = await enqueue(short, {})
    const pool = await start()
    await entered.promise
    expect(await drain({ drainMs: 50, graceMs: 50 })).toMatchObject([
      { queue: QUEUE, abandoned: [{ id, task: 'conformance.short' }] },
    ])
    expect(pool.state()).toBe('TERMINATE_TIMEOUT')
    over.resolve({ n: 1 })
  })

  it('draining is idempotent, and immediate for a pool that never started', async () => {
    const { start, pool: make, drain } = await openSetup(open)
    const [pool, idle] = [await start(), make('test:2')]
    const [[first], [second]] = await Promise.all([drain(), drain()])
    expect(second).toBe(first)
    expect([pool.state(), idle.state()]).toEqual(['SHUTDOWN', 'SHUTDOWN'])
  })

  it('a second signal ends the drain timeout', async () => {
    const { handle, holds } = gate()
    const { enqueue, start } = await openSetup(open, { handle })
    await enqueue(long, {})
    const pool = await start()
    await holds(1)
    const hurry = new AbortController()
    const drained = pool.drain({ drainMs: 60_000, graceMs: 2_000, hurry: hurry.signal })
    hurry.abort()
    expect(await drained).toMatchObject({ queue: QUEUE, abandoned: [] })
  })

  it('a pool drains hard when its parent is closed', async () => {
    const { handle, holds } = gate()
    const parent = new AbortController()
    const { enqueue, start, reaches } = await openSetup(open, { handle, parent: parent.signal })
    const id = await enqueue(long, {})
    const pool = await start()
    await holds(1)
    parent.abort()
    await eventually(() => pool.state() === 'SHUTDOWN')
    const end = { state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed' }
    expect(await reaches(id, 'waiting')).toMatchObject({ attemptsMade: 0, attempts: [end] })
  })

  it('a slot that is stopped with wait finishes its task, and the other slots run on', async () => {
    const { handle, holds, open: release, entered } = gate()
    const { enqueue, start, settled } = await openSetup(open, { handle, concurrency: 2 })
    const ids = [await enqueue(long, {}), await enqueue(long, {}), await enqueue(long, {})]
    const pool = await start()
    await holds(2)
    const busy = pool.slots().find(({ task }) => task?.id === entered[0])?.slot ?? 0
    pool.stopSlot(busy, 'wait')
    expect(pool.size()).toBe(1)
    expect(() => pool.stopSlot(busy, 'wait')).toThrow(expect.objectContaining({ code: 'wrong_state' }))
    release()
    const records = await Promise.all(ids.map(settled))
    expect(records.map((record) => record?.status)).toEqual(['completed', 'completed', 'completed'])
    expect(records[2]?.attempts[0]?.slot).not.toBe(busy)
  })

  it('a slot that is stopped hard requeues its task, which another slot starts', async () => {
    const { handle, holds, entered } = gate()
    const { enqueue, start, settled } = await openSetup(open, {
      handle: (context) => (context.fencingToken === 1 ? handle(context) : context.input),
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

  it('a pool fetches nothing while it has too many stuck handlers', async () => {
    const over = Promise.withResolvers<{ n: number }>()
    const { enqueue, start, settled, find, events } = await openSetup(open, {
      handle: ({ input }) => (input.n === 1 ? over.promise : input),
      concurrency: 1,
      maxStuckHandlers: 0,
    })
    const pool = await start()
    const stuck = await enqueue(long, { n: 1 }, { timeout: '30ms' })
    await eventually(() => pool.stuckHandlers() === 1)
    const next = await enqueue(long, {})
    expect(pool.notReady()).toContain('is not accepting tasks')
    expect((await find(next)).status).toBe('waiting')
    over.resolve({ n: 1 })
    expect((await settled(next))?.status).toBe('completed')
    expect(pool.notReady()).toBeUndefined()
    expect(events).toContainEqual(expect.objectContaining({ event: 'attempt.late', id: stuck, fencingToken: 1 }))
  })

  it('an online pool ends when every task of its set has ended', async () => {
    const { enqueue, pool: make, broker, settled } = await openSetup(open)
    const ids = await Promise.all([enqueue(short, { n: 1 }), enqueue(long, { n: 2 })])
    const pool = make()
    expect(await pool.online(ids, broker.waitUntilFinished)).toEqual({ state: 'ONLINE_DONE', unfinished: [] })
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    expect(pool.slots().map(({ state }) => state)).toEqual(Array.from({ length: 4 }, () => 'TERMINATED'))
  })

  it('an online pool that is drained earlier names the unfinished tasks of its set', async () => {
    const { handle, holds } = gate()
    const {
      enqueue,
      pool: make,
      broker,
      drain,
      settled,
    } = await openSetup(open, {
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
