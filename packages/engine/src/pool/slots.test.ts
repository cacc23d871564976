import { describe, expect, it, vi } from 'vitest'
import { GRACE_MS, stage, TIMEOUT_MS } from './pool.fixture.ts'
import { Slots } from './slots.ts'

function slotsOf(size: number) {
  const { host, taken, calls, clock, named } = stage()
  const onCapacityChange = vi.fn()
  const slots = new Slots(size, { ...host, queue: 'test' }, onCapacityChange)
  const states = () => slots.status().map(({ state }) => state)
  return { slots, taken, calls, clock, named, onCapacityChange, states }
}

/** Slots of which one runs a task. */
function working(size: number, name: 'test.long' | 'test.short' = 'test.long') {
  const setup = slotsOf(size)
  setup.slots.fetchingBegan()
  const task = setup.taken(name)
  const slot = setup.slots.take(task)
  if (slot === undefined) throw new Error('no slot is idle')
  const result = Promise.resolve(slot.run(task))
  const [call] = setup.calls
  if (call === undefined) throw new Error('the handler was not called')
  return { ...setup, task, slot, call, result }
}

describe('the slots of a pool', () => {
  it('are NEW and take no task until fetching begins, and IDLE then', () => {
    const { slots, states, taken } = slotsOf(2)
    expect(states()).toEqual(['NEW', 'NEW'])
    expect(slots.take(taken('test.long'))).toBeUndefined()
    expect(slots.fetchingBegan()).toBe(0)
    expect(states()).toEqual(['IDLE', 'IDLE'])
  })

  it('are shown by number, with their state, since when, and their task', async () => {
    const { slots, clock, taken } = slotsOf(2)
    slots.fetchingBegan()
    await clock.advance(70)
    const task = taken('test.long')
    const slot = slots.take(task)
    expect(slots.status().find((each) => each.slot === slot?.number)).toEqual({
      slot: slot?.number,
      state: 'WORKING',
      since: clock.now(),
      task: { id: task.id, task: 'test.long', fencingToken: 1 },
    })
    expect(slots.status().filter((each) => each.task === undefined)).toMatchObject([
      { state: 'IDLE', since: clock.now() - 70 },
    ])
  })

  it('show when the run timeout of a long attempt passes', () => {
    const { slots, slot, clock } = working(1)
    expect(slots.status()).toMatchObject([
      { slot: slot.number, state: 'WORKING', task: { timeoutAt: clock.now() + TIMEOUT_MS } },
    ])
  })

  it('take one task each, and the slot that became idle last works next', () => {
    const { slots, taken } = slotsOf(2)
    slots.fetchingBegan()
    const [first, second] = [slots.take(taken('test.long')), slots.take(taken('test.long'))]
    expect(slots.take(taken('test.long'))).toBeUndefined()
    expect(slots.busy).toBe(2)
    if (first === undefined || second === undefined) throw new Error('two slots were idle')
    slots.release(second)
    slots.release(first)
    expect(slots.take(taken('test.long'))).toBe(first)
  })

  it('report a task as running until its attempt has ended, not until it is committed', async () => {
    const { slots, slot, task, call, result } = working(2)
    expect(slots.tasks()).toEqual([task])
    call.finish()
    await result
    slot.commit()
    expect(slots.tasks()).toEqual([])
    expect(slots.busy).toBe(1)
  })

  it('resolve when none of them has a task', async () => {
    const { slots, slot } = working(2)
    let isIdle = false
    const idle = slots.idle().then(() => (isIdle = true))
    await Promise.resolve()
    expect(isIdle).toBe(false)
    slots.release(slot)
    await idle
    await slots.idle()
  })

  it('count the handlers that still run after their attempt has ended', async () => {
    const { slots, clock, call, result, onCapacityChange } = working(1)
    await clock.advance(TIMEOUT_MS + GRACE_MS)
    expect((await result).record.reason).toBe('run_timeout')
    expect(slots.stuckHandlers).toBe(1)
    expect(onCapacityChange).toHaveBeenCalledTimes(1)
    call.finish()
    await clock.advance(0)
    expect(slots.stuckHandlers).toBe(0)
    expect(onCapacityChange).toHaveBeenCalledTimes(2)
  })
})

describe('slots that are to stop', () => {
  it('end at once when they are idle, and otherwise when their task has ended', () => {
    const { slots, states, slot } = working(2)
    slots.end('TERMINATING_STOP_SIGNAL')
    expect(states().sort()).toEqual(['TERMINATED', 'TERMINATING_STOP_SIGNAL'])
    expect({ size: slots.size, busy: slots.busy }).toEqual({ size: 0, busy: 1 })
    slots.release(slot)
    expect(states()).toEqual(['TERMINATED', 'TERMINATED'])
    expect({ size: slots.size, busy: slots.busy }).toEqual({ size: 0, busy: 0 })
  })

  it('stop harder when they are asked again, and never softer', () => {
    const { slots, slot } = working(1)
    slots.end('TERMINATING_TASK_CH_CLOSED')
    slots.end('TERMINATING_TASK_CH_CLOSED')
    expect(slot.state).toBe('TERMINATING_TASK_CH_CLOSED')
    slots.end('TERMINATING_STOP_SIGNAL')
    slots.end('TERMINATING_TASK_CH_CLOSED')
    expect(slot.state).toBe('TERMINATING_STOP_SIGNAL')
    slots.end('TERMINATING_PARENT_CTX_CLOSED')
    slots.end('TERMINATING_STOP_SIGNAL')
    expect(slot.state).toBe('TERMINATING_PARENT_CTX_CLOSED')
  })

  it.each(['TERMINATING_STOP_SIGNAL', 'TERMINATING_PARENT_CTX_CLOSED', 'TERMINATING_TASK_CH_CLOSED'] as const)(
    'by %s end before fetching has begun, and while it has failed',
    (state) => {
      const fresh = slotsOf(1)
      fresh.slots.end(state)
      expect(fresh.states()).toEqual(['TERMINATED'])
      const failed = slotsOf(1)
      failed.slots.fetchingBegan()
      failed.slots.fetchingFailed()
      failed.slots.end(state)
      expect(failed.states()).toEqual(['TERMINATED'])
    },
  )

  it('close the context of every long attempt, with at most the given grace', async () => {
    const { slots, clock, call, result } = working(2)
    slots.closeAll('drain', 20)
    expect(call.abortReason()).toMatchObject({ name: 'AbortError' })
    await clock.advance(20)
    expect((await result).record).toMatchObject({ state: 'TERMINATED_CTX_CLOSED', reason: 'drain' })
  })
})

describe('slots whose consumer failed', () => {
  it('are RECOVER_ERR while they are idle, until fetching begins again; the others finish their tasks', () => {
    const { slots, states, slot, taken } = working(2)
    slots.fetchingFailed()
    expect(states().sort()).toEqual(['RECOVER_ERR', 'WORKING'])
    expect(slots.take(taken('test.long'))).toBeUndefined()
    expect(slots.size).toBe(2)
    slots.release(slot)
    expect(states()).toEqual(['RECOVER_ERR', 'RECOVER_ERR'])
    expect(slots.fetchingBegan()).toBe(2)
    expect(states()).toEqual(['IDLE', 'IDLE'])
    expect([slots.take(taken('test.long')), slots.take(taken('test.long'))]).not.toContain(undefined)
    expect(slots.take(taken('test.long'))).toBeUndefined()
  })

  it('are reported as restarted once when fetching resumes, but not if none was idle', () => {
    const { slots, slot, states, named } = working(1)
    slots.fetchingFailed()
    slots.fetchingResumed(7)
    expect(named('slots.restarted')).toEqual([])
    slots.release(slot)
    slots.fetchingFailed()
    slots.fetchingFailed()
    slots.fetchingResumed(7)
    expect(states()).toEqual(['IDLE'])
    expect(named('slots.restarted')).toEqual([{ event: 'slots.restarted', queue: 'test', slots: 1, afterMs: 7 }])
  })
})

describe('stopping one slot', () => {
  it('ends it at once when it is idle; a second stop finds no such slot', () => {
    const { slots, states } = slotsOf(2)
    slots.fetchingBegan()
    expect(slots.stop(1, 'wait')).toBe(true)
    expect(states()).toEqual(['TERMINATED', 'IDLE'])
    expect(slots.size).toBe(1)
    expect(slots.stop(1, 'wait')).toBe(false)
    expect(slots.stop(1, 'hard')).toBe(false)
  })

  it('lets its attempt finish with wait, and stops the attempt with hard, also after a wait', () => {
    const { slots, slot, call } = working(1)
    expect(slots.stop(slot.number, 'wait')).toBe(true)
    expect(call.abortReason()).toBeUndefined()
    expect(slots.stop(slot.number, 'wait')).toBe(false)
    expect(slots.stop(slot.number, 'hard')).toBe(true)
    expect(call.abortReason()).toMatchObject({ message: 'the slot was stopped' })
    expect(slot.state).toBe('TERMINATING_STOP_SIGNAL')
  })

  it.each([0, 3, -1, 1.5])('does nothing when there is no slot %d', (number) => {
    const { slots } = slotsOf(2)
    slots.fetchingBegan()
    expect(slots.stop(number, 'hard')).toBe(false)
    expect(slots.size).toBe(2)
  })
})

describe('one task among the slots', () => {
  it('is found by its id and cancelled, and its record says by whom', async () => {
    const { slots, task, clock, result } = working(2)
    expect(slots.cancel(task.id, { reason: 'cancelled', by: 'alice' })).toBe('cancelling')
    await clock.advance(GRACE_MS)
    expect((await result).record).toMatchObject({
      state: 'TERMINATED_STOP_SIGNAL',
      reason: 'cancelled',
      by: 'alice',
      counted: true,
    })
    expect(slots.cancel(task.id)).toBe('not_cancellable')
  })

  it('is not cancelled by a request from before its last retry', async () => {
    const { slots, taken } = working(2)
    const retried = taken('test.long', { retriedAt: 17 })
    void slots.run(retried, () => {})
    expect(slots.cancel(retried.id, undefined, 0)).toBe('not_found')
    expect(slots.cancel(retried.id, undefined, 17)).toBe('cancelling')
  })

  it('loses its lock only if the attempt that lost it still runs', () => {
    const { slots, task, call } = working(2)
    slots.lockLost(task.id, task.fencingToken + 1)
    expect(call.abortReason()).toBeUndefined()
    slots.lockLost(task.id, task.fencingToken)
    expect(call.abortReason()).toMatchObject({ message: 'the attempt lost the lock on its task' })
  })

  it('that waits until it can run alone loses its lock only if this attempt has lost it', () => {
    const { slots, taken } = working(2)
    const task = taken('test.long')
    const held = slots.hold({ ...task, fencingToken: 2 })
    slots.lockLost(task.id, 1)
    expect(held.hasLostLock).toBe(false)
    slots.lockLost(task.id, 2)
    expect(held.hasLostLock).toBe(true)
  })

  it('is not cancellable when it is short, and not found when another pool runs it', () => {
    const { slots, task, taken } = working(2, 'test.short')
    expect(slots.cancel(task.id)).toBe('not_cancellable')
    expect(slots.cancel(taken('test.long').id)).toBe('not_found')
    slots.lockLost(taken('test.long').id)
  })
})
