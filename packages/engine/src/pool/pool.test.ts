import { getEventListeners } from 'node:events'
import type { TaskId, TaskRecord } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import { newTask } from '../task/new-task.ts'
import { clockFrom } from '../time/clock.ts'
import { GRACE_MS, type Handle, poolFixture, poolStates, tasks } from './pool.fixture.ts'

const AT_ONCE = { drainMs: 0, graceMs: GRACE_MS }
const PATIENTLY = { drainMs: 10_000, graceMs: GRACE_MS }

/** A pool that has begun to fetch. */
async function started(options: Parameters<typeof poolFixture>[0] = {}) {
  const fixture = poolFixture(options)
  await fixture.pool.start()
  return fixture
}

const aTask = () =>
  newTask(
    tasks.long,
    {},
    {},
    { id: createTaskId('test', 1, new Uint8Array(10)), enqueuedAt: 1, correlationId: undefined },
  )

describe('a pool', () => {
  it('connects to nothing until it is started, and then fetches tasks', async () => {
    const fixture = poolFixture({ concurrency: 3 })
    const { pool, consumer, states } = fixture
    expect([pool.state(), pool.notReady(), consumer.opens]).toEqual([
      'NEW',
      "the pool for queue 'test' is not running: not started",
      0,
    ])
    await pool.start()
    expect([pool.state(), pool.notReady(), consumer.opens, consumer.runs]).toEqual(['BG_RUNNING', undefined, 1, 1])
    expect([pool.size(), pool.busy(), states()]).toEqual([3, 0, ['IDLE', 'IDLE', 'IDLE']])
    expect(poolStates(fixture)).toEqual(['BG_RUNNING'])
  })

  it('runs each task in its own slot, and names the slot in the record', async () => {
    const { pool, give, calls, clock, states } = await started()
    const given = [give(), give()]
    await clock.advance(0)
    expect([pool.busy(), states()]).toEqual([2, ['WORKING', 'WORKING']])
    for (const { finish } of calls) finish()
    await Promise.all(given.map(({ settled }) => settled))
    expect(given.map(({ result }) => result?.record.slot).sort()).toEqual([1, 2])
    expect([pool.busy(), states(), clock.pending()]).toEqual([0, ['IDLE', 'IDLE'], 0])
  })

  it('releases a task when no slot is idle, as if it had not been fetched', async () => {
    const { give, calls, clock, named } = await started({ concurrency: 1 })
    const [first, second] = [give(), give()]
    await second.settled
    expect([first.released, second.released]).toEqual([false, true])
    await clock.advance(0)
    calls[0]?.finish()
    await first.settled
    expect(named('attempt.started')).toHaveLength(1)
  })

  it('reports why its consumer is not ready, also while it starts', async () => {
    const starting = poolFixture()
    starting.consumer.lack = 'Redis is not connected'
    expect(starting.pool.notReady()).toBe(
      "the pool for queue 'test' is not running: not started; Redis is not connected",
    )
    const { pool, consumer } = await started()
    consumer.lack = 'Redis is not connected'
    expect(pool.notReady()).toBe('Redis is not connected')
    expect(pool.notReady(true)).toBeUndefined()
  })

  it('starts once, and refuses a second start during and after the first', async () => {
    const fixture = poolFixture()
    const first = fixture.pool.start()
    await expect(fixture.pool.start()).rejects.toMatchObject({ code: 'wrong_state' })
    await first
    await expect(fixture.pool.start()).rejects.toMatchObject({
      code: 'wrong_state',
      message: expect.stringContaining('BG_RUNNING'),
    })
    await expect(fixture.pool.online([], async () => undefined)).rejects.toMatchObject({ code: 'wrong_state' })
    expect(fixture.consumer.opens).toBe(1)
  })

  it('frees a slot when its result could not be committed', async () => {
    const { consumer, taken, calls, clock, pool } = await started({ concurrency: 1 })
    const failing = consumer.work(
      taken('test.long'),
      () => Promise.reject(new Error('no answer')),
      () => undefined,
    )
    await clock.advance(0)
    calls[0]?.finish()
    await expect(failing).rejects.toThrow('no answer')
    expect(pool.busy()).toBe(0)
  })
})

describe('a drain', () => {
  it('goes in order: stop fetching, wait, signal at the deadline, grace period, requeue, close', async () => {
    const fixture = await started()
    const { pool, consumer, give, calls, clock, states } = fixture
    const given = give('test.long', { timeoutMs: 'none' })
    await clock.advance(0)
    const drained = pool.drain({ drainMs: 1_000, graceMs: GRACE_MS })
    expect([pool.state(), pool.notReady(), consumer.stops]).toEqual([
      'SHUTTING_DOWN',
      "the pool for queue 'test' is not running: draining",
      1,
    ])
    expect(states().sort()).toEqual(['TERMINATED', 'TERMINATING_STOP_SIGNAL'])
    const late = give()
    await late.settled
    expect(late.released).toBe(true)
    await clock.advance(999)
    expect([calls[0]?.abortReason(), calls[0]?.context.poolSignal.aborted]).toEqual([undefined, false])
    await clock.advance(1)
    expect(calls[0]?.abortReason()).toMatchObject({ name: 'AbortError', message: expect.stringContaining('drain') })
    expect(calls[0]?.context.poolSignal.aborted).toBe(true)
    expect([states().sort(), consumer.closed]).toEqual([['TERMINATED', 'TERMINATING_PARENT_CTX_CLOSED'], false])
    await clock.advance(GRACE_MS)
    expect(await drained).toMatchObject({ queue: 'test', abandoned: [] })
    expect(given.result).toMatchObject({
      record: { state: 'TERMINATED_CTX_CLOSED', reason: 'drain' },
      verdict: { kind: 'requeued' },
    })
    expect([pool.state(), consumer.closed, states(), clock.pending()]).toEqual([
      'SHUTDOWN',
      true,
      ['TERMINATED', 'TERMINATED'],
      0,
    ])
    expect(poolStates(fixture)).toEqual(['BG_RUNNING', 'SHUTTING_DOWN', 'SHUTDOWN'])
  })

  it('is one drain when it is asked for twice', async () => {
    const fixture = await started()
    const [first, second] = [fixture.pool.drain(AT_ONCE), fixture.pool.drain(PATIENTLY)]
    expect(second).toBe(first)
    await first
    expect(await fixture.pool.drain(PATIENTLY)).toMatchObject({ queue: 'test', abandoned: [] })
    expect(poolStates(fixture)).toEqual(['BG_RUNNING', 'SHUTTING_DOWN', 'SHUTDOWN'])
    expect(fixture.consumer.stops).toBe(1)
  })

  it('requeues a short task whose handler throws the reason of its signal, without counting an attempt', async () => {
    const stopped = Promise.withResolvers<never>()
    const handle: Handle = ({ signal }) => {
      signal.addEventListener('abort', () => stopped.reject(signal.reason))
      return stopped.promise
    }
    const { pool, give, clock } = poolFixture({ handle })
    await pool.start()
    const given = give('test.short')
    const drained = pool.drain({ drainMs: 1_000, graceMs: GRACE_MS })
    await clock.advance(1_000)
    expect(await drained).toMatchObject({ finished: 0, requeued: 1, abandoned: [] })
    await given.settled
    expect(given.result?.verdict.kind).toBe('requeued')
    expect(given.result?.record).toMatchObject({ state: 'TERMINATED_CTX_CLOSED', reason: 'drain', counted: false })
  })

  it('abandons a short task that outlasts the grace period, names it, and ends as TERMINATE_TIMEOUT', async () => {
    const { pool, give, calls, clock } = await started()
    const given = give('test.short')
    await clock.advance(0)
    const drained = pool.drain(AT_ONCE)
    await clock.advance(2_000)
    expect(await drained).toMatchObject({ queue: 'test', abandoned: [{ id: given.task.id, task: 'test.short' }] })
    calls[0]?.finish()
    await given.settled
    expect(given.result?.verdict.kind).toBe('completed')
    expect([pool.state(), pool.busy(), clock.pending()]).toEqual(['TERMINATE_TIMEOUT', 0, 0])
  })

  it('reaches its deadline at a second signal, also one that came before the drain', async () => {
    for (const early of [true, false]) {
      const { pool, give, calls, clock } = await started()
      give()
      await clock.advance(0)
      const hurry = new AbortController()
      if (early) hurry.abort()
      const drained = pool.drain({ ...PATIENTLY, hurry: hurry.signal })
      hurry.abort()
      await clock.advance(0)
      expect(calls[0]?.abortReason()).toMatchObject({ message: expect.stringContaining('drain') })
      await clock.advance(GRACE_MS)
      expect((await drained).abandoned).toEqual([])
    }
  })

  it('does not wait for a consumer that cannot commit', async () => {
    const { pool, consumer, clock } = await started()
    consumer.stopping = () => new Promise(() => {})
    const drained = pool.drain(PATIENTLY)
    await clock.advance(1_000)
    expect(await drained).toMatchObject({ queue: 'test', abandoned: [] })
    expect([pool.state(), consumer.closed, clock.pending()]).toEqual(['SHUTDOWN', true, 0])
  })

  it('ends even when the consumer fails to stop', async () => {
    const { pool, consumer, give, calls, clock } = await started()
    give()
    await clock.advance(0)
    consumer.stopping = () => Promise.reject(new Error('not connected'))
    const drained = pool.drain(PATIENTLY)
    await clock.advance(0)
    calls[0]?.finish()
    expect((await drained).abandoned).toEqual([])
    expect(pool.state()).toBe('SHUTDOWN')
  })

  it('of a pool that never started ends at once', async () => {
    const { pool, consumer, states } = poolFixture()
    expect(await pool.drain(PATIENTLY)).toMatchObject({ queue: 'test', abandoned: [] })
    expect([pool.state(), states(), consumer.stops]).toEqual(['SHUTDOWN', ['TERMINATED', 'TERMINATED'], 0])
    await expect(pool.start()).rejects.toMatchObject({ code: 'wrong_state' })
  })

  it('that begins while the store is awaited keeps the pool from running', async () => {
    const { pool, consumer, states } = poolFixture()
    const { promise, resolve } = Promise.withResolvers<void>()
    consumer.opening = () => promise
    const starting = pool.start()
    await pool.drain(PATIENTLY)
    resolve()
    await starting
    expect([pool.state(), consumer.runs, states()]).toEqual(['SHUTDOWN', 0, ['TERMINATED', 'TERMINATED']])
  })
})

describe('an error that belongs to no attempt', () => {
  const BROKEN = { ...AT_ONCE, broken: true }

  it('moves the pool to RECOVER_ERR at once, and then drains it hard', async () => {
    const { pool, give, calls, clock } = await started()
    give()
    await clock.advance(0)
    const drained = pool.drain({ ...PATIENTLY, broken: true })
    expect(pool.state()).toBe('RECOVER_ERR')
    expect(calls[0]?.abortReason()).toBeUndefined()
    await clock.advance(0)
    expect(calls[0]?.abortReason()).toBeDefined()
    await clock.advance(GRACE_MS)
    expect(await drained).toMatchObject({ requeued: 0, abandoned: [{ task: 'test.long' }] })
    expect(pool.state()).toBe('RECOVER_ERR')
  })

  it('is not overwritten by the end of a drain that leaves tasks behind', async () => {
    const { pool, give, clock } = await started()
    give('test.short')
    const drained = pool.drain(BROKEN)
    await clock.advance(2_000)
    expect((await drained).abandoned).toHaveLength(1)
    expect(pool.state()).toBe('RECOVER_ERR')
  })

  it('makes a drain that is under way hard', async () => {
    const { pool, give, calls, clock } = await started()
    give()
    await clock.advance(0)
    const drained = pool.drain({ drainMs: 'none', graceMs: GRACE_MS })
    void pool.drain(BROKEN)
    expect(pool.state()).toBe('RECOVER_ERR')
    await clock.advance(0)
    expect(calls[0]?.abortReason()).toBeDefined()
    await clock.advance(GRACE_MS)
    expect(await drained).toMatchObject({ requeued: 0, abandoned: [{ task: 'test.long' }] })
    expect(pool.state()).toBe('RECOVER_ERR')
  })

  it.each([
    ['NEW', async () => poolFixture()],
    [
      'SHUTDOWN',
      async () => {
        const ended = await started()
        await ended.pool.drain(AT_ONCE)
        return ended
      },
    ],
    [
      'TERMINATE_TIMEOUT',
      async () => {
        const ended = await started()
        ended.give('test.short')
        const drained = ended.pool.drain(AT_ONCE)
        await ended.clock.advance(2_000)
        await drained
        return ended
      },
    ],
    [
      'ONLINE_DONE',
      async () => {
        const ended = poolFixture()
        await ended.pool.online([], () => new Promise(() => {}))
        return ended
      },
    ],
    [
      'INCOMPLETE_DONE',
      async () => {
        const ended = poolFixture()
        const online = ended.pool.online([aTask().id], async () => undefined)
        await ended.clock.advance(2_000)
        await online
        return ended
      },
    ],
  ] as const)('reaches a pool that is %s, too', async (state, make) => {
    const { pool } = await make()
    expect(pool.state()).toBe(state)
    await pool.drain(BROKEN)
    await pool.drain(BROKEN)
    expect(pool.state()).toBe('RECOVER_ERR')
  })
})

describe('a parent that closes', () => {
  it('drains the pool hard, by itself', async () => {
    const parent = new AbortController()
    const { pool, give, calls, clock, states } = await started({ parent: parent.signal })
    const given = give()
    await clock.advance(0)
    parent.abort()
    await clock.advance(0)
    expect(calls[0]?.abortReason()).toMatchObject({ message: expect.stringContaining('parent signal') })
    expect(states().sort()).toEqual(['TERMINATED', 'TERMINATING_PARENT_CTX_CLOSED'])
    await clock.advance(GRACE_MS)
    await given.settled
    expect(given.result).toMatchObject({
      record: { state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed' },
      verdict: { kind: 'requeued' },
    })
    await pool.drain(PATIENTLY)
    expect([pool.state(), clock.pending()]).toEqual(['SHUTDOWN', 0])
  })

  it('moves the deadline of a drain that is under way to now', async () => {
    const parent = new AbortController()
    const { pool, give, calls, clock } = await started({ parent: parent.signal })
    give('test.long', { timeoutMs: 'none' })
    await clock.advance(0)
    const drained = pool.drain({ drainMs: 60_000, graceMs: GRACE_MS })
    await clock.advance(100)
    expect(calls[0]?.abortReason()).toBeUndefined()
    parent.abort()
    await clock.advance(0)
    expect(calls[0]?.abortReason()).toBeDefined()
    await clock.advance(GRACE_MS)
    expect((await drained).abandoned).toEqual([])
  })

  it('before the start prevents the start', async () => {
    const { pool, states } = poolFixture({ parent: AbortSignal.abort() })
    expect([pool.state(), states()]).toEqual(['SHUTDOWN', ['TERMINATED', 'TERMINATED']])
    await expect(pool.start()).rejects.toMatchObject({ code: 'wrong_state' })
  })
})

describe('an online pool', () => {
  /** What the broker would tell of a set of tasks. */
  function records(ids: readonly TaskId[]) {
    const ended = new Set<TaskId>()
    let changed = Promise.withResolvers<void>()
    const record = (id: TaskId) => ({ id, status: ended.has(id) ? 'completed' : 'waiting' }) as TaskRecord
    return {
      end(...which: number[]) {
        for (const at of which) ended.add(ids[at] as TaskId)
        changed.resolve()
        changed = Promise.withResolvers()
      },
      async settled(id: TaskId, signal: AbortSignal): Promise<TaskRecord> {
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
        while (!ended.has(id) && !signal.aborted) await Promise.race([changed.promise, aborted])
        return record(id)
      },
    }
  }
  function online(count: number, options: Parameters<typeof poolFixture>[0] = {}) {
    const fixture = poolFixture(options)
    const ids = Array.from({ length: count }, () => fixture.taken('test.long').id)
    const set = records(ids)
    const report = fixture.pool.online(ids, set.settled)
    return { ...fixture, ids, set, report }
  }

  it('ends as ONLINE_DONE when every task of its set has ended, here or on another worker', async () => {
    const { pool, set, report, states, clock, consumer, ...fixture } = online(3)
    await clock.advance(0)
    expect(pool.state()).toBe('ONLINE_RUNNING')
    set.end(0, 1)
    await clock.advance(0)
    expect(pool.state()).toBe('ONLINE_RUNNING')
    set.end(2)
    expect(await report).toEqual({ state: 'ONLINE_DONE', unfinished: [] })
    expect(poolStates(fixture)).toEqual(['ONLINE_RUNNING', 'ONLINE_DONE'])
    expect([states(), consumer.closed, clock.pending()]).toEqual([['TERMINATED', 'TERMINATED'], true, 0])
  })

  it('with no tasks is done at once', async () => {
    expect(await online(0).report).toEqual({ state: 'ONLINE_DONE', unfinished: [] })
  })

  it('stops its slots as TERMINATING_TASK_CH_CLOSED, and lets other tasks that run finish', async () => {
    const { pool, give, calls, set, report, states, clock } = online(1)
    await clock.advance(0)
    const besides = give()
    await clock.advance(0)
    set.end(0)
    await clock.advance(0)
    expect(states().sort()).toEqual(['TERMINATED', 'TERMINATING_TASK_CH_CLOSED'])
    calls[0]?.finish()
    expect((await report).state).toBe('ONLINE_DONE')
    expect([besides.result?.verdict.kind, pool.busy()]).toEqual(['completed', 0])
  })

  it.each(['drain', 'parent'] as const)(
    'that is ended before by its %s: INCOMPLETE_DONE, with what is left',
    async (by) => {
      const parent = new AbortController()
      const { pool, set, report, ids, clock } = online(3, { parent: parent.signal })
      await clock.advance(0)
      set.end(1)
      await clock.advance(0)
      if (by === 'parent') parent.abort()
      else void pool.drain(AT_ONCE)
      expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: [ids[0], ids[2]] })
      expect(pool.state()).toBe('INCOMPLETE_DONE')
    },
  )

  it('that is drained while the store is awaited ends as INCOMPLETE_DONE with every task unfinished', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const fixture = poolFixture()
    fixture.consumer.opening = () => promise
    const ids = [fixture.taken('test.long').id]
    const report = fixture.pool.online(ids, records(ids).settled)
    const drained = fixture.pool.drain(AT_ONCE)
    resolve()
    await drained
    expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: ids })
  })

  it('counts tasks that end during its drain as ended', async () => {
    const { pool, set, report, ids, clock, give, calls } = online(2)
    await clock.advance(0)
    give()
    await clock.advance(0)
    void pool.drain(PATIENTLY)
    await clock.advance(10)
    set.end(0)
    calls[0]?.finish()
    expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: [ids[1]] })
    const other = online(1)
    await other.clock.advance(0)
    other.give()
    await other.clock.advance(0)
    void other.pool.drain(PATIENTLY)
    await other.clock.advance(10)
    other.set.end(0)
    other.calls[0]?.finish()
    expect(await other.report).toEqual({ state: 'SHUTDOWN', unfinished: [] })
  })

  it('goes on when a second start is refused', async () => {
    const { pool, set, report, clock, ids } = online(1)
    await clock.advance(0)
    await expect(pool.online([], set.settled)).rejects.toMatchObject({ code: 'wrong_state' })
    void pool.drain(AT_ONCE)
    expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: ids })
  })

  it('with a task that does not exist ends as INCOMPLETE_DONE with that task unfinished', async () => {
    const fixture = poolFixture()
    const { id } = fixture.taken('test.long')
    const report = fixture.pool.online([id], async () => undefined)
    expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: [id] })
  })

  it('asks again about a task while the store does not answer', async () => {
    const fixture = poolFixture()
    const { id } = fixture.taken('test.long')
    let asked = 0
    const report = fixture.pool.online([id], async () => {
      if (asked++ < 3) throw new Error('redis is unreachable')
      return { id, status: 'dead' } as TaskRecord
    })
    await fixture.clock.advance(2_999)
    expect([asked, fixture.pool.state()]).toEqual([3, 'ONLINE_RUNNING'])
    await fixture.clock.advance(1)
    expect(await report).toEqual({ state: 'ONLINE_DONE', unfinished: [] })
    expect(fixture.clock.pending()).toBe(0)
  })

  it('reports a task that cannot be looked up as unfinished', async () => {
    const fixture = poolFixture()
    const ids = [fixture.taken('test.long').id]
    const report = fixture.pool.online(ids, () => Promise.reject(new Error('redis is unreachable')))
    await fixture.clock.advance(0)
    void fixture.pool.drain(AT_ONCE)
    await fixture.clock.advance(0)
    expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: ids })
  })
})

describe('stuck handlers', () => {
  it('stop the pool from fetching when there are too many, until enough have returned', async () => {
    const { pool, consumer, give, calls, clock } = await started({ concurrency: 3, maxStuckHandlers: 1 })
    for (let i = 0; i < 2; i++) give()
    await clock.advance(150)
    expect([pool.stuckHandlers(), pool.busy(), consumer.size]).toEqual([2, 0, 0])
    expect(pool.notReady()).toContain('it has more stuck handlers (2) than allowed (1)')
    const released = give()
    await released.settled
    expect(released.released).toBe(true)
    calls[0]?.finish()
    await clock.advance(0)
    expect([pool.stuckHandlers(), consumer.size, pool.notReady()]).toEqual([1, 3, undefined])
    const welcome = give()
    await clock.advance(0)
    expect([welcome.released, pool.busy()]).toEqual([false, 1])
  })
})

describe('a slot that is stopped', () => {
  it('with wait ends after its task, and the pool goes on with one slot less', async () => {
    const { pool, consumer, give, calls, clock, states } = await started()
    const given = give()
    await clock.advance(0)
    const slot = pool.slots().find(({ state }) => state === 'WORKING')?.slot ?? 0
    pool.stopSlot(slot, 'wait')
    expect([pool.size(), consumer.size, calls[0]?.abortReason()]).toEqual([1, 1, undefined])
    calls[0]?.finish()
    await given.settled
    expect(given.result?.verdict.kind).toBe('completed')
    expect(states().sort()).toEqual(['IDLE', 'TERMINATED'])
    expect(pool.notReady()).toBeUndefined()
  })

  it('with hard stops its attempt, and the task is requeued', async () => {
    const { pool, give, calls, clock } = await started({ concurrency: 1 })
    const given = give()
    await clock.advance(0)
    pool.stopSlot(1, 'hard')
    expect(calls[0]?.abortReason()).toMatchObject({ message: 'the slot was stopped' })
    calls[0]?.fail(calls[0].abortReason())
    await given.settled
    expect(given.result).toMatchObject({
      record: { state: 'TERMINATED_STOP_SIGNAL', reason: 'slot_stopped' },
      verdict: { kind: 'requeued' },
    })
  })

  it('a second time, or with an unknown number, is a typed error', async () => {
    const { pool } = await started()
    pool.stopSlot(1, 'wait')
    for (const [slot, how] of [
      [1, 'wait'],
      [1, 'hard'],
      [9, 'wait'],
    ] as const) {
      expect(() => pool.stopSlot(slot, how)).toThrow(expect.objectContaining({ code: 'wrong_state' }))
    }
  })

  it('before the start lowers the capacity of the consumer', async () => {
    const { pool, consumer, states } = poolFixture()
    pool.stopSlot(1, 'wait')
    await pool.start()
    expect([states(), consumer.size]).toEqual([['TERMINATED', 'IDLE'], 1])
  })

  it('as the last one leaves a pool that is not ready', async () => {
    const { pool, consumer } = await started({ concurrency: 1 })
    pool.stopSlot(1, 'wait')
    expect([consumer.size, pool.notReady()]).toEqual([
      0,
      "the pool for queue 'test' is not accepting tasks: its slots have been stopped",
    ])
  })
})

describe('a cancel', () => {
  it('of a running long task signals its handler and ends it as cancelled', async () => {
    const { pool, give, calls, clock } = await started()
    const given = give()
    await clock.advance(0)
    expect(pool.cancel(given.task.id)).toBe('cancelling')
    expect(calls[0]?.abortReason()).toMatchObject({ message: expect.stringContaining('cancelled') })
    calls[0]?.fail(new Error('stopped'))
    await given.settled
    expect(given.result).toMatchObject({
      record: { state: 'TERMINATED_STOP_SIGNAL' },
      verdict: { kind: 'cancelled' },
    })
  })

  it('of a running short task is refused as not_cancellable, and the task goes on', async () => {
    const { pool, give, calls, clock } = await started()
    const given = give('test.short')
    await clock.advance(0)
    expect(pool.cancel(given.task.id)).toBe('not_cancellable')
    calls[0]?.finish()
    await given.settled
    expect(given.result?.verdict.kind).toBe('completed')
  })

  it('of a task that does not run here is not_found', async () => {
    const { pool, taken } = await started()
    expect(pool.cancel(taken('test.long').id)).toBe('not_found')
  })
})

describe('a lock that is lost', () => {
  it('aborts the attempt, whose result is not committed', async () => {
    const { consumer, give, calls, clock } = await started()
    const given = give()
    await clock.advance(0)
    consumer.pool.lockLost(given.task.id)
    expect(calls[0]?.abortReason()).toMatchObject({ message: expect.stringContaining('lost the lock') })
    calls[0]?.finish()
    await given.settled
    expect(given.result).toMatchObject({
      record: { state: 'TERMINATED_CTX_CLOSED', reason: 'lock_lost' },
      verdict: { kind: 'lost' },
    })
  })

  it('of a task that does not run here changes nothing', async () => {
    const { consumer, taken, pool } = await started()
    consumer.pool.lockLost(taken('test.long').id)
    expect(pool.busy()).toBe(0)
  })
})

describe('a pool that has ended', () => {
  it('leaves no timer and no listener behind, also on a real clock', async () => {
    const parent = new AbortController()
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
    const before = timers()
    const clock = clockFrom({
      now: Date.now,
      monotonic: () => performance.now(),
      setTimeout,
      clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
    })
    const { pool, give, calls } = await started({ clock, parent: parent.signal })
    const [long, short] = [give(), give('test.short')]
    expect(timers()).toBeGreaterThan(before)
    const drained = pool.drain(PATIENTLY)
    for (const { finish } of calls) finish()
    await Promise.all([long.settled, short.settled])
    expect((await drained).abandoned).toEqual([])
    expect(timers()).toBe(before)
    expect(getEventListeners(parent.signal, 'abort')).toEqual([])
  })
})

describe('a consumer that fails', () => {
  it('leaves the idle slots in RECOVER_ERR until it is opened and run again after a delay', async () => {
    const { consumer, give, calls, clock, states, named } = await started()
    const given = give()
    await clock.advance(0)
    consumer.fail()
    await clock.advance(0)
    expect(states().sort()).toEqual(['RECOVER_ERR', 'WORKING'])
    calls[0]?.finish()
    await given.settled
    await clock.advance(499)
    expect(consumer.runs).toBe(1)
    await clock.advance(1)
    expect([consumer.opens, consumer.runs, states()]).toEqual([2, 2, ['IDLE', 'IDLE']])
    expect(named('slots.restarted')).toEqual([{ event: 'slots.restarted', queue: 'test', slots: 2, afterMs: 500 }])
  })

  it('repeatedly is restarted after growing delays of up to 30 s, which start over after a long healthy run', async () => {
    const { consumer, clock, named } = await started()
    const failAgain = async () => {
      consumer.fail()
      await clock.advance(30_000)
    }
    for (let i = 0; i < 8; i++) await failAgain()
    const waits = () => named('slots.restarted').map((event) => 'afterMs' in event && event.afterMs)
    expect(waits()).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    await clock.advance(60_000)
    await failAgain()
    expect(waits().at(-1)).toBe(500)
  })

  it('to open again is retried', async () => {
    const { consumer, clock, states, named } = await started()
    consumer.opening = () => Promise.reject(new Error('not connected'))
    consumer.fail()
    await clock.advance(500)
    expect([consumer.opens, consumer.runs, states()]).toEqual([2, 1, ['RECOVER_ERR', 'RECOVER_ERR']])
    consumer.opening = async () => {}
    await clock.advance(1_000)
    expect([consumer.opens, consumer.runs, states()]).toEqual([3, 2, ['IDLE', 'IDLE']])
    expect(named('slots.restarted').length).toBeGreaterThan(0)
  })

  it('gets its capacity again when it is restarted', async () => {
    const { pool, consumer, clock } = await started()
    pool.stopSlot(1, 'wait')
    consumer.size = undefined
    consumer.fail()
    await clock.advance(500)
    expect(consumer.size).toBe(1)
  })

  it('is not restarted after a drain, and leaves no timer behind', async () => {
    const { pool, consumer, clock } = await started()
    consumer.fail()
    await clock.advance(0)
    await pool.drain(AT_ONCE)
    await clock.advance(60_000)
    expect([pool.state(), consumer.opens, clock.pending()]).toEqual(['SHUTDOWN', 1, 0])
  })
})
