import { TaskError } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { GRACE_MS, soloist, TIMEOUT_MS } from '../pool/pool.fixture.ts'

/** A long attempt that has begun and waits for the test. */
async function begun(envelope: object = {}, given: object = {}, task = 'test.long') {
  const solo = soloist()
  const ended = solo.run(task, envelope, given)
  await solo.clock.advance(0)
  const [call] = solo.calls
  if (call === undefined || solo.slot.interruption === undefined) throw new Error('the handler was not called')
  return { ...solo, ended, call, interruption: solo.slot.interruption }
}

describe('a queue timeout', () => {
  it('that has passed when the task is fetched expires it without an attempt', async () => {
    const { run, calls, clock, events } = soloist()
    const readyAt = clock.now()
    await clock.advance(200)
    expect(await run('test.long', { queueMs: 200 }, { readyAt })).toMatchObject({
      record: { state: 'TERMINATED_TIMEOUT', reason: 'queue_timeout' },
      verdict: { kind: 'expired' },
    })
    expect(calls).toEqual([])
    expect(events).toMatchObject([
      { event: 'attempt.started', waitedMs: undefined },
      { event: 'attempt.ended', durationMs: 0 },
    ])
  })

  it('lets the attempt start if it has not passed, or if the task has started before', async () => {
    const { run, calls, clock } = soloist()
    const readyAt = clock.now()
    await clock.advance(199)
    void run('test.long', { queueMs: 200 }, { readyAt })
    await clock.advance(1_000)
    void run('test.long', { queueMs: 200 }, { readyAt: undefined, fencingToken: 2 })
    await clock.advance(0)
    expect(calls).toHaveLength(2)
  })
})

describe('a total timeout', () => {
  it('that passes while the handler runs signals it, and leaves the task dead after the grace period', async () => {
    const { ended, call, clock } = await begun({ timeoutMs: 'none', totalMs: 70 })
    await clock.advance(70)
    expect(call.abortReason()).toMatchObject({ name: 'TimeoutError', message: 'the total timeout of 70ms expired' })
    await clock.advance(GRACE_MS)
    expect(await ended).toMatchObject({
      record: { state: 'TERMINATED_TIMEOUT', reason: 'total_timeout' },
      verdict: { kind: 'dead' },
    })
  })
})

describe('a cancel of a running task', () => {
  it('signals the handler, and ends the task as cancelled whatever the handler throws', async () => {
    const { ended, call, clock, interruption } = await begun({}, { attempt: 1 })
    interruption.stop({ reason: 'cancelled' })
    expect(call.abortReason()).toMatchObject({ name: 'AbortError' })
    call.fail(new TaskError('gone', 'gone', { retryable: false }))
    expect(await ended).toMatchObject({
      record: { state: 'TERMINATED_STOP_SIGNAL', reason: 'cancelled', message: 'the task was cancelled' },
      verdict: { kind: 'cancelled' },
    })
    expect(clock.pending()).toBe(0)
  })

  it('decides the end at the signal: output within the grace period is a late result', async () => {
    const { ended, call, interruption, named } = await begun()
    interruption.stop({ reason: 'cancelled' })
    call.finish()
    expect((await ended).verdict).toEqual({ kind: 'cancelled' })
    expect(named('attempt.late')).toHaveLength(1)
  })
})

describe('a hard stop of its slot', () => {
  it('requeues the task, and the attempt does not count', async () => {
    const { ended, clock, interruption } = await begun({}, { attempt: 3 })
    interruption.stop({ reason: 'slot_stopped' })
    await clock.advance(GRACE_MS)
    expect(await ended).toMatchObject({
      record: { state: 'TERMINATED_STOP_SIGNAL', reason: 'slot_stopped' },
      verdict: { kind: 'requeued' },
    })
  })

  it('accepts valid output within the grace period', async () => {
    const { ended, call, interruption } = await begun()
    interruption.stop({ reason: 'slot_stopped' })
    call.finish({ n: 7 })
    expect((await ended).verdict).toEqual({ kind: 'completed', output: { n: 7 } })
  })
})

describe('a closed context', () => {
  it.each([
    ['drain', 'requeued', 'interrupted by a drain'],
    ['parent_closed', 'requeued', "pool's parent signal"],
    ['lock_lost', 'lost', 'lost the lock'],
  ] as const)(
    'by %s ends the attempt as TERMINATED_CTX_CLOSED with that reason and the verdict %s',
    async (reason, verdict, message) => {
      const { ended, call, clock, interruption } = await begun({}, { attempt: 3 })
      interruption.close(reason)
      expect(call.abortReason()).toMatchObject({ name: 'AbortError', message: expect.stringContaining(message) })
      await clock.advance(GRACE_MS)
      expect(await ended).toMatchObject({
        record: { state: 'TERMINATED_CTX_CLOSED', reason },
        verdict: { kind: verdict },
      })
    },
  )

  it.each([
    ['parent_closed', 'completed'],
    ['lock_lost', 'lost'],
  ] as const)('by %s, with valid output within the grace period, gives the verdict %s', async (reason, verdict) => {
    const { ended, call, interruption } = await begun()
    interruption.close(reason)
    call.finish()
    expect((await ended).verdict.kind).toBe(verdict)
  })

  it('frees the slot after the shorter of the task’s grace period and the given one', async () => {
    const { clock, interruption, slot } = await begun()
    interruption.close('drain', 20)
    await clock.advance(19)
    expect(slot.interruption).toBeDefined()
    await clock.advance(1)
    expect(slot.interruption).toBeUndefined()
  })

  it.each(['drain', 'parent_closed', 'slot_stopped'] as const)(
    'by %s leaves a task with onInterrupt fail dead, unless it returns valid output within the grace period',
    async (reason) => {
      for (const outputs of [false, true]) {
        const { ended, call, clock, interruption } = await begun({}, {}, 'test.fragile')
        if (reason === 'slot_stopped') interruption.stop({ reason })
        else interruption.close(reason)
        if (outputs) call.finish()
        await clock.advance(GRACE_MS)
        const { record, verdict } = await ended
        expect([record.reason, verdict.kind]).toEqual(outputs ? [undefined, 'completed'] : [reason, 'dead'])
      }
    },
  )

  it('requeues a task that has not started, even one with onInterrupt fail', async () => {
    const { run, slot, calls } = soloist()
    slot.closedBy = 'drain'
    expect((await run('test.fragile')).verdict).toEqual({ kind: 'requeued' })
    expect(calls).toEqual([])
  })

  it('starts no handler: the task is requeued at once', async () => {
    const { run, slot, calls } = soloist()
    slot.closedBy = 'parent_closed'
    expect(await run('test.short')).toMatchObject({
      record: { state: 'TERMINATED_CTX_CLOSED', reason: 'parent_closed' },
      verdict: { kind: 'requeued' },
    })
    expect(calls).toEqual([])
  })
})

describe('a handler that does not end within the grace period', () => {
  it('is stuck until it returns, and is then reported as late once', async () => {
    const { ended, call, clock, stuckHandlers, named } = await begun()
    await clock.advance(TIMEOUT_MS + GRACE_MS)
    await ended
    expect(stuckHandlers.size).toBe(1)
    await clock.advance(1_000)
    call.fail(new Error('late'))
    call.finish()
    await clock.advance(0)
    expect(stuckHandlers.size).toBe(0)
    expect(named('attempt.late')).toMatchObject([{ overrunMs: GRACE_MS + 1_000 }])
    expect(named('attempt.ended')).toHaveLength(1)
    expect(clock.pending()).toBe(0)
  })

  it('keeps its slot when its grace period has no limit', async () => {
    const solo = soloist()
    const ended = solo.run('test.patient', { timeoutMs: 10 })
    await solo.clock.advance(1e9)
    expect(solo.calls[0]?.abortReason()).toBeDefined()
    expect(solo.slot.interruption).toBeDefined()
    solo.calls[0]?.fail(new Error('at last'))
    expect((await ended).record.reason).toBe('run_timeout')
  })
})

describe('a stack overflow', () => {
  it.each(['test.short', 'test.long'])('in a handler of %s is a panic', async (task) => {
    const endless = (): number => endless() + 1
    const { run } = soloist({ handle: async () => ({ n: endless() }) })
    expect(await run(task)).toMatchObject({
      record: { state: 'RECOVER_ERR', reason: 'unexpected_error', message: expect.stringContaining('RangeError') },
      verdict: { kind: 'retrying' },
    })
  })
})
