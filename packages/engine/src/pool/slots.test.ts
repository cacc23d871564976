import { fakeClock } from '@bullpen/testkit'
import { describe, expect, it } from 'vitest'
import { stage } from './pool.fixture.ts'
import type { Interruption } from './slot.ts'
import { Slots } from './slots.ts'

const { taken } = stage()

function crewOf(size: number) {
  const clock = fakeClock()
  const stuckHandlers: number[] = []
  const crew = new Slots(size, clock, (count) => stuckHandlers.push(count))
  return { crew, clock, stuckHandlers, states: () => crew.status().map(({ state }) => state) }
}

/** A long attempt that remembers what it was told. */
function interruption() {
  const told: string[] = []
  const run: Interruption = {
    timeoutAt: undefined,
    close: (reason, graceMs) => told.push(`close ${reason} ${graceMs}`),
    stop: ({ reason }) => told.push(`stop ${reason}`),
    onTimer: () => {},
  }
  return { run, told }
}

/** A crew of which the first to work holds a long task. */
function working(size: number) {
  const all = crewOf(size)
  all.crew.begin()
  const task = taken('rig.long')
  const slot = all.crew.take(task)
  if (slot === undefined) throw new Error('nobody was idle')
  const { run, told } = interruption()
  slot.interruption = run
  return { ...all, task, slot, told }
}

describe('a crew', () => {
  it('is NEW until it begins, and then idle; nobody of it takes a task before', () => {
    const { crew, states } = crewOf(2)
    expect(states()).toEqual(['NEW', 'NEW'])
    expect(crew.take(taken('rig.long'))).toBeUndefined()
    crew.begin()
    expect(states()).toEqual(['IDLE', 'IDLE'])
  })

  it('shows each slot by number, with its state, since when, and what it runs', async () => {
    const { crew, clock } = crewOf(2)
    crew.begin()
    await clock.advance(70)
    const task = taken('rig.long')
    const slot = crew.take(task)
    expect(crew.status().find((each) => each.slot === slot?.number)).toEqual({
      slot: slot?.number,
      state: 'WORKING',
      since: clock.now(),
      task: { id: task.id, task: 'rig.long', fencingToken: 1 },
    })
    expect(crew.status().filter(({ task }) => task === undefined)).toMatchObject([
      { state: 'IDLE', since: clock.now() - 70 },
    ])
  })

  it('gives no more tasks than it has slots, and the last one to be idle is the next to work', () => {
    const { crew } = crewOf(2)
    crew.begin()
    const [first, second] = [crew.take(taken('rig.long')), crew.take(taken('rig.long'))]
    expect(crew.take(taken('rig.long'))).toBeUndefined()
    expect(crew.busy).toBe(2)
    if (first === undefined || second === undefined) throw new Error('two were idle')
    crew.release(second)
    crew.release(first)
    expect(crew.take(taken('rig.long'))).toBe(first)
  })

  it('tells when nobody works any more', async () => {
    const { crew, slot } = working(2)
    let idle = false
    const told = crew.idle().then(() => (idle = true))
    await Promise.resolve()
    expect(idle).toBe(false)
    crew.release(slot)
    await told
    await crew.idle()
  })

  it('tells how many handlers are left over, whenever that changes', () => {
    const { crew, stuckHandlers } = crewOf(1)
    const { run } = interruption()
    crew.stuckHandlers.add(run)
    crew.stuckHandlers.delete(run)
    crew.stuckHandlers.delete(run)
    expect(stuckHandlers).toEqual([1, 0])
    expect(crew.stuckHandlerCount).toBe(0)
  })
})

describe('a crew that is told to end', () => {
  it('ends its idle slots at once, and the others when their task has ended', () => {
    const { crew, states, slot } = working(2)
    crew.end('TERMINATING_STOP_SIGNAL')
    expect(states().sort()).toEqual(['TERMINATED', 'TERMINATING_STOP_SIGNAL'])
    expect([crew.size, crew.busy]).toEqual([0, 1])
    crew.release(slot)
    expect(states()).toEqual(['TERMINATED', 'TERMINATED'])
    expect([crew.size, crew.busy]).toEqual([0, 0])
  })

  it('twice is once; what is soft may turn hard, and nothing turns softer', () => {
    const { crew, slot } = working(1)
    crew.end('TERMINATING_TASK_CH_CLOSED')
    crew.end('TERMINATING_TASK_CH_CLOSED')
    expect(slot.state).toBe('TERMINATING_TASK_CH_CLOSED')
    crew.end('TERMINATING_STOP_SIGNAL')
    crew.end('TERMINATING_TASK_CH_CLOSED')
    expect(slot.state).toBe('TERMINATING_STOP_SIGNAL')
    crew.end('TERMINATING_PARENT_CTX_CLOSED')
    crew.end('TERMINATING_STOP_SIGNAL')
    expect(slot.state).toBe('TERMINATING_PARENT_CTX_CLOSED')
  })

  it('ends slots that never began, and those that had failed', () => {
    const { crew, states } = crewOf(1)
    crew.end('TERMINATING_STOP_SIGNAL')
    expect(states()).toEqual(['TERMINATED'])
    const failed = crewOf(1)
    failed.crew.begin()
    failed.crew.failed()
    failed.crew.end('TERMINATING_PARENT_CTX_CLOSED')
    expect(failed.states()).toEqual(['TERMINATED'])
  })

  it('closes every long attempt, with at most so much grace', () => {
    const { crew, told } = working(2)
    crew.closeAll('drain', 20)
    expect(told).toEqual(['close drain 20'])
  })
})

describe('a crew whose feed failed', () => {
  it('has its idle slots in RECOVER_ERR until it begins again; those that work go on', () => {
    const { crew, states, slot } = working(2)
    crew.failed()
    expect(states().sort()).toEqual(['RECOVER_ERR', 'WORKING'])
    expect(crew.take(taken('rig.long'))).toBeUndefined()
    expect(crew.size).toBe(2)
    crew.release(slot)
    expect(crew.begin()).toBe(1)
    expect(states()).toEqual(['IDLE', 'IDLE'])
    expect([crew.take(taken('rig.long')), crew.take(taken('rig.long'))]).not.toContain(undefined)
    expect(crew.take(taken('rig.long'))).toBeUndefined()
  })
})

describe('stopping one slot', () => {
  it('that is idle ends it at once; it is not there any more', () => {
    const { crew, states } = crewOf(2)
    crew.begin()
    expect(crew.stop(1, 'wait')).toBe(true)
    expect(states()).toEqual(['TERMINATED', 'IDLE'])
    expect(crew.size).toBe(1)
    expect([crew.stop(1, 'wait'), crew.stop(1, 'hard')]).toEqual([false, false])
  })

  it('by wait lets its task end; by hard stops it, also after a wait', () => {
    const { crew, slot, told } = working(1)
    expect(crew.stop(slot.number, 'wait')).toBe(true)
    expect(told).toEqual([])
    expect(crew.stop(slot.number, 'wait')).toBe(false)
    expect(crew.stop(slot.number, 'hard')).toBe(true)
    expect(told).toEqual(['stop slot_stopped'])
    expect(slot.state).toBe('TERMINATING_STOP_SIGNAL')
  })

  it.each([0, 3, -1, 1.5])('that there is not (%d) does nothing', (number) => {
    const { crew } = crewOf(2)
    crew.begin()
    expect(crew.stop(number, 'hard')).toBe(false)
    expect(crew.size).toBe(2)
  })
})

describe('cancelling, and closing, one task', () => {
  it('finds it by its id, and signals a long one', () => {
    const { crew, task, told } = working(2)
    expect(crew.cancel(task.id)).toBe('cancelling')
    crew.close(task.id, 'lock_lost')
    expect(told).toEqual(['stop cancelled', 'close lock_lost undefined'])
  })

  it('says that a short one can’t be stopped, and that another one is not here', () => {
    const { crew, slot, task } = working(2)
    slot.interruption = undefined
    expect(crew.cancel(task.id)).toBe('not_cancellable')
    expect(crew.cancel(taken('rig.long').id)).toBe('not_found')
    crew.close(taken('rig.long').id, 'lock_lost')
  })
})
