// Tests a pool's guarantees that in-process worker pools commonly lack. Guarantees that need Redis or HTTP are tested in their
// packages.
import type { TaskRecord } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { GRACE_MS, poolFixture, poolStates, soloist, TIMEOUT_MS, tasks } from './pool.fixture.ts'

async function started(options: Parameters<typeof poolFixture>[0] = {}) {
  const fixture = poolFixture(options)
  await fixture.pool.start()
  return fixture
}

describe('a handler that returns after its timeout or stop', () => {
  it.each(['returns', 'throws'] as const)(
    '%s into nothing: no crash, no second end, and its slot goes on',
    async (how) => {
      const { pool, give, calls, clock, named } = await started({ concurrency: 1, maxStuckHandlers: 5 })
      const timedOut = give()
      await clock.advance(TIMEOUT_MS + GRACE_MS)
      const second = give()
      await clock.advance(0)
      pool.cancel(second.task.id)
      await clock.advance(GRACE_MS)
      expect([timedOut.result?.record.state, second.result?.record.state, pool.stuckHandlers()]).toEqual([
        'TERMINATED_TIMEOUT',
        'TERMINATED_STOP_SIGNAL',
        2,
      ])
      // An unhandled rejection would fail this run, as it would end a worker.
      for (const { finish, fail } of calls) how === 'returns' ? finish() : fail(new Error('late'))
      await clock.advance(0)
      expect([named('attempt.ended').length, named('attempt.late').length, pool.stuckHandlers()]).toEqual([2, 2, 0])
      const third = give()
      await clock.advance(0)
      calls[2]?.finish()
      await third.settled
      expect(third.result?.verdict.kind).toBe('completed')
    },
  )
})

describe('a drain', () => {
  it('finishes running tasks, releases fetched ones, and does not report a clean shutdown when it abandons one', async () => {
    const fixture = await started({ concurrency: 1 })
    const { pool, give, calls, clock } = fixture
    const first = give()
    await clock.advance(0)
    const drained = pool.drain({ drainMs: 60_000, graceMs: GRACE_MS })
    const rest = [give(), give(), give()]
    calls[0]?.finish()
    expect(await drained).toMatchObject({ queue: 'test', abandoned: [] })
    expect(first.result?.verdict.kind).toBe('completed')
    expect(rest.map(({ released }) => released)).toEqual([true, true, true])
    expect(poolStates(fixture)).toEqual(['BG_RUNNING', 'SHUTTING_DOWN', 'SHUTDOWN'])

    const other = await started()
    const left = other.give('test.short')
    await other.clock.advance(0)
    const given = other.pool.drain({ drainMs: 10, graceMs: GRACE_MS })
    await other.clock.advance(2_000)
    expect((await given).abandoned).toEqual([{ id: left.task.id, task: 'test.short' }])
    expect(other.pool.state()).toBe('TERMINATE_TIMEOUT')
  })
})

describe('a drain with a timeout', () => {
  it('signals the handler at its deadline, and requeues its task', async () => {
    const { pool, give, calls, clock } = await started()
    const given = give('test.long', { timeoutMs: 'none' })
    await clock.advance(0)
    const drained = pool.drain({ drainMs: 500, graceMs: GRACE_MS })
    await clock.advance(500)
    expect(calls[0]?.context.signal.aborted).toBe(true)
    expect(() => calls[0]?.context.checkpoint()).toThrow(/drain/)
    calls[0]?.fail(calls[0].abortReason())
    expect((await drained).abandoned).toEqual([])
    expect(given.result?.verdict.kind).toBe('requeued')
  })
})

describe('a call to a pool that is stopping or has stopped', () => {
  it('is refused with a typed error', async () => {
    const { pool, give, clock } = await started()
    give()
    await clock.advance(0)
    const drained = pool.drain({ drainMs: 0, graceMs: GRACE_MS })
    const released = { name: 'BullpenError', code: 'wrong_state' }
    for (const ended of [false, true]) {
      await expect(pool.start()).rejects.toMatchObject(released)
      for (const call of [() => pool.pause(), () => pool.resume(), () => pool.resize(3)]) {
        expect(call).toThrow(expect.objectContaining(released))
      }
      if (ended) break
      await clock.advance(GRACE_MS)
      await drained
    }
  })
})

describe('an online pool whose parent is closed', () => {
  it('ends as INCOMPLETE_DONE and names its unfinished tasks', async () => {
    const parent = new AbortController()
    const { pool, clock, taken } = poolFixture({ parent: parent.signal })
    const ids = Array.from({ length: 10 }, () => taken('test.long').id)
    const done = new Set(ids.slice(0, 4))
    const report = pool.online(ids, async (id, signal) => {
      if (!done.has(id) && !signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { id, status: done.has(id) ? 'completed' : 'waiting' } as TaskRecord
    })
    await clock.advance(0)
    parent.abort()
    expect(await report).toEqual({ state: 'INCOMPLETE_DONE', unfinished: ids.slice(4) })
  })
})

describe('a late handler of an ended attempt', () => {
  it('cannot affect the next attempt of its slot by progress, heartbeats, children, errors or snoozes', async () => {
    const { run, calls, clock, slot, progress, enqueued, named } = soloist()
    const limits = { timeoutMs: TIMEOUT_MS, heartbeatMs: 60 }
    const first = run('test.long', limits)
    await clock.advance(60 + GRACE_MS)
    expect((await first).record.reason).toBe('heartbeat_timeout')
    const second = run('test.long', limits, { fencingToken: 2, attempt: 2 })
    await clock.advance(0)
    const [old, current] = calls
    if (old === undefined || current === undefined) throw new Error('two handlers were called')
    expect(current.context).not.toBe(old.context)

    await clock.advance(50)
    old.context.heartbeat()
    expect(() => old.context.checkpoint()).toThrow(/heartbeat/)
    await old.context.progress(0.9)
    await expect(old.context.enqueue(tasks.child, {})).rejects.toMatchObject({ code: 'wrong_state' })
    expect(old.escape(new Error('late'))).toBe('late')
    old.snooze('1s')
    await clock.advance(0)
    expect([progress, enqueued, current.abortReason(), slot.interruption !== undefined]).toEqual([
      [],
      [],
      undefined,
      true,
    ])

    // The old heartbeat has not kept the new attempt alive.
    await clock.advance(10)
    expect(current.abortReason()).toMatchObject({ message: expect.stringContaining('heartbeat') })
    await clock.advance(GRACE_MS)
    expect((await second).record).toMatchObject({
      fencingToken: 2,
      state: 'TERMINATED_TIMEOUT',
      reason: 'heartbeat_timeout',
    })
    expect(named('attempt.ended')).toHaveLength(2)
  })
})

describe('a panic in a long task', () => {
  it.each(['before', 'after'] as const)('%s its first await ends as RECOVER_ERR, and is no success', async (when) => {
    const handle = async () => {
      if (when === 'after') await Promise.resolve()
      throw new TypeError('n is not a function')
    }
    const { run } = soloist({ handle })
    expect(await run('test.long')).toMatchObject({
      record: { state: 'RECOVER_ERR', reason: 'unexpected_error', message: 'TypeError: n is not a function' },
      verdict: { kind: 'retrying' },
    })
  })
})

describe('TERMINATED_CTX_CLOSED', () => {
  it.each(['drain', 'parent_closed', 'lock_lost'] as const)('is reached by %s, with that reason', async (reason) => {
    const parent = new AbortController()
    const { pool, consumer, give, clock } = await started({ parent: parent.signal })
    const given = give()
    await clock.advance(0)
    if (reason === 'drain') void pool.drain({ drainMs: 0, graceMs: GRACE_MS })
    else if (reason === 'parent_closed') parent.abort()
    else consumer.pool.lockLost(given.task.id)
    await clock.advance(GRACE_MS)
    expect(given.result?.record).toMatchObject({ state: 'TERMINATED_CTX_CLOSED', reason })
  })
})
