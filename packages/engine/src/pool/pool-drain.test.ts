// Tests the drain modes, two drains at once, and the report at the end of a drain.
import type { TaskId } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { drainLimits } from './drain.ts'
import { GRACE_MS, poolFixture, poolStates } from './pool.fixture.ts'

const ENDLESS = { timeoutMs: 'none' }
const times = { drainMs: 1_000, graceMs: GRACE_MS }
const light = drainLimits('light', times)
const soft = drainLimits('soft', times)
const softTimeout = drainLimits('soft_timeout', times)
const hard = drainLimits('hard', times)
const DAY_MS = 86_400_000

/** A pool at work on one long task that has no timeout. */
async function atWork(options: Parameters<typeof poolFixture>[0] = {}) {
  const fixture = poolFixture(options)
  await fixture.pool.start()
  const given = fixture.give('test.long', ENDLESS)
  await fixture.clock.advance(0)
  const call = fixture.calls[0]
  if (call === undefined) throw new Error('nothing runs')
  return { ...fixture, given, call }
}

describe('a light drain', () => {
  it('starts and finishes tasks that were being fetched when it began, and has no deadline', async () => {
    const fixture = await atWork()
    const { pool, give, call, calls, clock, states, consumer } = fixture
    const drained = pool.drain(light)
    expect([pool.state(), states().sort(), consumer.stops]).toEqual([
      'SHUTTING_DOWN',
      ['IDLE', 'TERMINATING_TASK_CH_CLOSED'],
      1,
    ])
    const fetched = give('test.long', ENDLESS)
    await clock.advance(DAY_MS)
    expect([fetched.released, pool.busy(), call.abortReason()]).toEqual([false, 2, undefined])
    call.finish()
    await clock.advance(DAY_MS)
    calls[1]?.finish()
    expect(await drained).toMatchObject({ finished: 2, requeued: 0, abandoned: [], slowestTaskMs: 2 * DAY_MS })
    expect([states(), clock.pending(), consumer.closed]).toEqual([['TERMINATED', 'TERMINATED'], 0, true])
    expect(poolStates(fixture)).toEqual(['BG_RUNNING', 'SHUTTING_DOWN', 'SHUTDOWN'])
  })

  it('waits for tasks that are being fetched when no slot is busy', async () => {
    const fixture = poolFixture()
    const { pool, consumer, give, calls, clock } = fixture
    await pool.start()
    const fetching = Promise.withResolvers<void>()
    consumer.stopping = () => fetching.promise
    const drained = pool.drain(light)
    await clock.advance(DAY_MS)
    expect(pool.state()).toBe('SHUTTING_DOWN')
    give()
    fetching.resolve()
    await clock.advance(0)
    calls[0]?.finish()
    expect(await drained).toMatchObject({ finished: 1 })
  })

  it('of a paused pool starts nothing', async () => {
    const { pool, give, call } = await atWork()
    pool.pause()
    const drained = pool.drain(light)
    const fetched = give()
    await fetched.settled
    expect(fetched.released).toBe(true)
    call.finish()
    expect(await drained).toMatchObject({ finished: 1, requeued: 1 })
  })

  it('counts a task once, however often it is fetched again and returned', async () => {
    const { pool, consumer, given, call } = await atWork()
    pool.pause()
    const drained = pool.drain(light)
    const task = { ...given.task, id: `${given.task.id}2` as TaskId }
    for (let n = 0; n < 2; n++) await consumer.give(task).settled
    call.finish()
    expect(await drained).toMatchObject({ finished: 1, requeued: 1 })
  })

  it('of a pool that waits for the store ends at once', async () => {
    const { pool, consumer, clock } = poolFixture()
    consumer.opening = () => new Promise(() => {})
    consumer.stopping = () => new Promise(() => {})
    void pool.start()
    const drained = pool.drain(light)
    await clock.advance(1_000)
    await drained
    expect(pool.state()).toBe('SHUTDOWN')
  })
})

describe('a soft drain', () => {
  it('finishes running tasks, releases fetched ones, and has no deadline', async () => {
    const { pool, give, call, clock, states } = await atWork()
    const drained = pool.drain(soft)
    expect(states().sort()).toEqual(['TERMINATED', 'TERMINATING_STOP_SIGNAL'])
    const fetched = give()
    await clock.advance(DAY_MS)
    expect([fetched.released, call.abortReason()]).toEqual([true, undefined])
    call.finish()
    expect(await drained).toMatchObject({ finished: 1, requeued: 1, abandoned: [] })
  })

  it('has to be over after its time limit and its grace period, once it has a time limit', async () => {
    const { pool, call, clock } = await atWork()
    expect(pool.drainsUntil()).toBeUndefined()
    const drained = pool.drain(soft)
    expect(pool.drainsUntil()).toBeUndefined()
    void pool.drain(softTimeout)
    expect(pool.drainsUntil()).toBe(clock.now() + Number(softTimeout.drainMs) + softTimeout.graceMs)
    call.finish()
    await drained
    expect(pool.drainsUntil()).toBeUndefined()
  })

  it('waits for the store too, until it gets a deadline', async () => {
    const { pool, call, clock, consumer, given } = await atWork()
    consumer.writing = () => new Promise(() => {})
    const drained = pool.drain(soft)
    call.finish()
    await clock.advance(DAY_MS)
    expect(pool.state()).toBe('SHUTTING_DOWN')
    void pool.drain(softTimeout)
    await clock.advance(3_000)
    expect(await drained).toMatchObject({ finished: 0, unconfirmed: [{ id: given.task.id, task: 'test.long' }] })
  })
})

describe('two drains', () => {
  it.each([
    ['light', 'soft', light, soft],
    ['light', 'hard', light, hard],
    ['soft', 'hard', soft, hard],
    ['soft_timeout', 'hard', softTimeout, hard],
  ])('%s and %s, in whichever order, are one, and as the harsher', async (_, harsher, ...both) => {
    for (const [first, second] of [both, both.toReversed()]) {
      if (first === undefined || second === undefined) throw new Error('there are two')
      const { pool, give, call, clock, states, consumer } = await atWork()
      const drained = pool.drain(first)
      await clock.advance(10)
      expect(pool.drain(second)).toBe(drained)
      await clock.advance(1)
      const fetched = give()
      await fetched.settled
      expect([fetched.released, consumer.stops]).toEqual([true, 1])
      expect(call.abortReason() !== undefined).toBe(harsher === 'hard')
      expect(states()).toContain(harsher === 'hard' ? 'TERMINATING_PARENT_CTX_CLOSED' : 'TERMINATING_STOP_SIGNAL')
      call.finish()
      expect((await drained).abandoned).toEqual([])
      expect(pool.state()).toBe('SHUTDOWN')
    }
  })

  it('have the earlier deadline', async () => {
    const { pool, call, clock } = await atWork()
    void pool.drain({ drainMs: 10_000, graceMs: GRACE_MS })
    await clock.advance(100)
    void pool.drain({ drainMs: 500, graceMs: GRACE_MS })
    void pool.drain({ drainMs: 20_000, graceMs: GRACE_MS })
    await clock.advance(499)
    expect(call.abortReason()).toBeUndefined()
    await clock.advance(1)
    expect(call.abortReason()).toBeDefined()
  })

  it.each(['light', 'soft'] as const)('are hurried by a signal of either: %s', async (mode) => {
    const { pool, call, clock } = await atWork()
    const hurry = new AbortController()
    void pool.drain(drainLimits(mode, times))
    void pool.drain({ ...soft, hurry: hurry.signal })
    await clock.advance(DAY_MS)
    expect(call.abortReason()).toBeUndefined()
    hurry.abort()
    await clock.advance(0)
    expect(call.abortReason()).toBeDefined()
  })
})

describe('the report of a drain', () => {
  it('counts finished, requeued and abandoned tasks, and how long the last one ran', async () => {
    const { pool, give, calls, clock } = await atWork({ concurrency: 4 })
    const [, cut] = [give('test.long', ENDLESS), give('test.short')]
    give('test.long', ENDLESS)
    await clock.advance(0)
    const drained = pool.drain(softTimeout)
    give()
    await clock.advance(100)
    calls[0]?.finish()
    calls[1]?.fail(new Error('panic'))
    await clock.advance(3_000)
    expect(await drained).toEqual({
      queue: 'test',
      finished: 2,
      requeued: 2,
      failed: 0,
      abandoned: [{ id: cut?.task.id, task: 'test.short' }],
      unconfirmed: [],
      slowestTaskMs: 1_000 + GRACE_MS + 1_000,
    })
  })

  it('counts separately the tasks that the drain failed', async () => {
    const { pool, give, clock } = await atWork({ concurrency: 3 })
    const [failed] = [give('test.fragile', ENDLESS), give('test.long', ENDLESS)]
    await clock.advance(0)
    const drained = pool.drain(hard)
    await clock.advance(GRACE_MS)
    expect(await drained).toMatchObject({ finished: 0, requeued: 2, failed: 1, abandoned: [] })
    expect(failed?.result).toMatchObject({ record: { reason: 'drain' }, verdict: { kind: 'dead' } })
  })

  it('gives the time of the last attempt that ended during the drain when none is abandoned', async () => {
    const { pool, give, calls, clock, given } = await atWork({ concurrency: 3 })
    give('test.long', ENDLESS)
    await clock.advance(0)
    calls[0]?.finish()
    await given.settled
    const drained = pool.drain(softTimeout)
    await clock.advance(70)
    calls[1]?.finish()
    expect(await drained).toMatchObject({ finished: 1, slowestTaskMs: 70 })
    const idle = poolFixture()
    expect(await idle.pool.drain(hard)).toMatchObject({ finished: 0, slowestTaskMs: 0 })
  })

  it('names tasks whose result was not confirmed, which is not a clean end and not an event', async () => {
    const { pool, consumer, call, clock, given, named } = await atWork()
    consumer.writing = () => new Promise(() => {})
    const drained = pool.drain(softTimeout)
    call.finish()
    await clock.advance(3_000)
    expect(await drained).toMatchObject({
      finished: 0,
      abandoned: [],
      unconfirmed: [{ id: given.task.id, task: 'test.long' }],
    })
    expect([pool.state(), consumer.closed]).toEqual(['TERMINATE_TIMEOUT', true])
    expect([...named('attempt.ended'), ...named('attempt.commit_refused')]).toEqual([])
  })

  it('counts a released task only when the store has confirmed the release', async () => {
    const { pool, consumer, give, call, clock } = await atWork()
    const written = Promise.withResolvers<void>()
    consumer.releasing = () => written.promise
    const drained = pool.drain(soft)
    give()
    call.finish()
    await clock.advance(1_000)
    expect(pool.state()).toBe('SHUTTING_DOWN')
    written.resolve()
    expect(await drained).toMatchObject({ finished: 1, requeued: 1, unconfirmed: [] })
  })

  it('names a released task whose release was not confirmed, and does not count it', async () => {
    const { pool, consumer, give, call, clock } = await atWork()
    consumer.releasing = () => new Promise(() => {})
    const drained = pool.drain(softTimeout)
    const { task } = give()
    call.finish()
    await clock.advance(3_000)
    expect(await drained).toMatchObject({ finished: 1, requeued: 0, unconfirmed: [{ id: task.id, task: 'test.long' }] })
    expect(pool.state()).toBe('TERMINATE_TIMEOUT')
  })

  it('does not count a task whose commit was refused, because another worker has it', async () => {
    const { pool, consumer, call, clock, named } = await atWork()
    consumer.refusal = 'lock_taken'
    const drained = pool.drain(softTimeout)
    call.finish()
    await clock.advance(3_000)
    expect(await drained).toMatchObject({ finished: 0, requeued: 0, failed: 0, abandoned: [], unconfirmed: [] })
    expect(named('attempt.ended')).toEqual([])
    expect(named('attempt.commit_refused')).toMatchObject([{ refusal: 'lock_taken', verdict: 'completed' }])
  })

  it('counts a task only when the store has confirmed its commit', async () => {
    const { pool, consumer, call, clock, named } = await atWork()
    const written = Promise.withResolvers<void>()
    consumer.writing = () => written.promise
    const drained = pool.drain(soft)
    call.finish()
    await clock.advance(1_000)
    expect(named('attempt.ended')).toEqual([])
    written.resolve()
    await clock.advance(0)
    expect(named('attempt.ended')).toMatchObject([{ verdict: 'completed' }])
    expect(await drained).toMatchObject({ finished: 1, unconfirmed: [], slowestTaskMs: 1_000 })
  })
})
