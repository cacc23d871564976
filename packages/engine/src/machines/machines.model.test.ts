// Takes random walks over the three state machines, and checks the rules that each machine must obey.
import type { AttemptState, PoolState, SlotState } from '@bullpen/contract'
import { ATTEMPT_STATES, POOL_STATES, SLOT_STATES } from '@bullpen/contract/internal'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Attempt } from '../attempt/attempt.ts'
import { decodeTask } from '../attempt/decode.ts'
import { stage } from '../pool/pool.fixture.ts'
import { Slot } from '../pool/slot.ts'
import { POOL_TRANSITIONS } from './pool-machine.ts'
import { assertTransition } from './state-machine.ts'

const isEnd = (state: AttemptState): boolean => state !== 'NEW' && state !== 'IN_PROCESS'

function attemptMay(from: AttemptState, to: AttemptState): boolean {
  if (from === 'NEW') return to === 'IN_PROCESS' || to.startsWith('TERMINATED_')
  return from === 'IN_PROCESS' && isEnd(to)
}

/** From the softest to the hardest way of ending. */
const WAYS: readonly SlotState[] = [
  'TERMINATING_TASK_CH_CLOSED',
  'TERMINATING_STOP_SIGNAL',
  'TERMINATING_PARENT_CTX_CLOSED',
]

function slotMay(from: SlotState, to: SlotState): boolean {
  if (from === 'TERMINATED') return false
  if (WAYS.includes(from)) return to === 'TERMINATED' || WAYS.indexOf(to) > WAYS.indexOf(from)
  if (WAYS.includes(to)) return true
  if (to === 'IDLE') return from !== 'IDLE'
  return from === 'IDLE' && (to === 'WORKING' || to === 'RECOVER_ERR')
}

function poolMay(from: PoolState, to: PoolState): boolean {
  const runs = from === 'BG_RUNNING' || from === 'ONLINE_RUNNING'
  if (from === 'RECOVER_ERR') return false
  switch (to) {
    case 'NEW':
      return false
    case 'BG_RUNNING':
    case 'ONLINE_RUNNING':
      return from === 'NEW'
    case 'SHUTTING_DOWN':
      return from === 'NEW' || runs
    case 'ONLINE_DONE':
      return from === 'ONLINE_RUNNING'
    case 'SHUTDOWN':
    case 'TERMINATE_TIMEOUT':
    case 'INCOMPLETE_DONE':
      return from === 'SHUTTING_DOWN'
    case 'RECOVER_ERR':
      return true
  }
}

interface Walker<S extends string> {
  readonly state: S
  moveTo(to: S): void
}

/** Checks that a machine makes each transition that the rule permits, and rejects all others without a change of state. */
function walks<S extends string>(states: readonly S[], may: (from: S, to: S) => boolean, born: () => Walker<S>): void {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...states), { maxLength: 30 }), (way) => {
      const walker = born()
      for (const to of way) {
        const from = walker.state
        if (may(from, to)) walker.moveTo(to)
        else expect(() => walker.moveTo(to)).toThrow(expect.objectContaining({ code: 'illegal_transition' }))
        expect(walker.state).toBe(may(from, to) ? to : from)
      }
    }),
    { numRuns: amount({ small: 1_000, full: 15_000 }) },
  )
}

it('an attempt makes exactly the transitions of its rules', () => {
  const { host, taken } = stage()
  const task = taken('test.long')
  const reading = decodeTask(task, host.registry)
  if (reading instanceof Error) throw reading
  const poolSignal = new AbortController().signal
  walks(ATTEMPT_STATES, attemptMay, () => new Attempt(task, reading, 0, { ...host, poolSignal }))
})

it('a slot makes exactly the transitions of its rules', () => {
  walks(SLOT_STATES, slotMay, () => new Slot(1, { ...stage().host, queue: 'test' }))
})

it('a pool makes exactly the transitions of its rules', () => {
  walks(POOL_STATES, poolMay, () => {
    let state: PoolState = 'NEW'
    return {
      get state() {
        return state
      },
      moveTo(to) {
        assertTransition('a pool', POOL_TRANSITIONS, state, to)
        state = to
      },
    }
  })
})
