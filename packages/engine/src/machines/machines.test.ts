import { BullpenError } from '@bullpen/contract'
import { ATTEMPT_END_STATES, ATTEMPT_STATES, END_REASONS, POOL_STATES, SLOT_STATES } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import { stage } from '../pool/pool.fixture.ts'
import { Slot } from '../pool/slot.ts'
import { ATTEMPT_TRANSITIONS } from './attempt-machine.ts'
import { POOL_TRANSITIONS } from './pool-machine.ts'
import { SLOT_TRANSITIONS } from './slot-machine.ts'
import { assertTransition, type Transitions } from './state-machine.ts'

interface Machine {
  readonly name: string
  readonly table: Transitions<string>
  readonly states: readonly string[]
}

const MACHINES: readonly Machine[] = [
  { name: 'attempt', table: ATTEMPT_TRANSITIONS, states: ATTEMPT_STATES },
  { name: 'slot', table: SLOT_TRANSITIONS, states: SLOT_STATES },
  { name: 'pool', table: POOL_TRANSITIONS, states: POOL_STATES },
]

function reachable<S extends string>(table: Transitions<S>, from: S): Set<S> {
  const seen = new Set<S>([from])
  for (const state of seen) for (const next of table[state]) seen.add(next)
  return seen
}

describe.each(MACHINES)('the machine of the $name', ({ table, states }) => {
  it('has exactly the states of the contract, from which the labels of metrics are made', () => {
    expect(Object.keys(table).sort()).toEqual([...states].sort())
    expect(Object.values(table).flat().sort()).toEqual(expect.arrayContaining(states.filter((each) => each !== 'NEW')))
  })

  it('reaches every state from NEW, never returns to NEW, and lets no state follow itself', () => {
    expect([...reachable(table, 'NEW')].sort()).toEqual([...states].sort())
    expect(Object.values(table).flat()).not.toContain('NEW')
    for (const [from, followers] of Object.entries(table)) {
      expect(followers).not.toContain(from)
      expect(new Set(followers).size).toBe(followers.length)
    }
  })

  it('reaches a final state from every state', () => {
    for (const from of states)
      expect([...reachable(table, from)].some((state) => table[state]?.length === 0)).toBe(true)
  })

  it('allows exactly the transitions of its table, and names both states of any other', () => {
    for (const from of states) {
      for (const to of states) {
        const move = () => assertTransition('it', table, from, to)
        if (table[from]?.includes(to)) expect(move).not.toThrow()
        else
          expect(move).toThrow(
            expect.objectContaining({
              code: 'illegal_transition',
              message: expect.stringContaining(`it cannot go from ${from} to ${to}`),
            }),
          )
      }
    }
  })
})

describe('the machines', () => {
  it('never leave the end of an attempt', () => {
    for (const end of ATTEMPT_END_STATES) expect(ATTEMPT_TRANSITIONS[end]).toEqual([])
  })

  it('never leave TERMINATED, and never return a stopping slot to work', () => {
    expect(SLOT_TRANSITIONS.TERMINATED).toEqual([])
    for (const ending of SLOT_STATES.filter((state) => state.startsWith('TERMINAT'))) {
      expect([...reachable<string>(SLOT_TRANSITIONS, ending)]).not.toEqual(
        expect.arrayContaining([expect.stringMatching(/IDLE|WORKING|RECOVER_ERR/)]),
      )
    }
  })

  it('never overwrite a shutdown that went wrong', () => {
    expect(POOL_TRANSITIONS.TERMINATE_TIMEOUT).not.toContain('SHUTDOWN')
    expect(POOL_TRANSITIONS.RECOVER_ERR).toEqual([])
  })

  it('never report an online pool as done once it shuts down', () => {
    expect([...reachable<string>(POOL_TRANSITIONS, 'SHUTTING_DOWN')]).not.toContain('ONLINE_DONE')
  })

  it('name the states that may follow', () => {
    expect(() => assertTransition('an attempt', ATTEMPT_TRANSITIONS, 'NEW', 'DONE_SUCCESS')).toThrow(
      /NEW to DONE_SUCCESS; only IN_PROCESS/,
    )
    expect(() => assertTransition('a pool', POOL_TRANSITIONS, 'RECOVER_ERR', 'BG_RUNNING')).toThrow(
      /RECOVER_ERR is final/,
    )
  })

  it('have a reason for every end but DONE_SUCCESS and DONE_ERROR', () => {
    expect(Object.keys(END_REASONS).sort()).toEqual(
      ATTEMPT_END_STATES.filter((state) => !state.startsWith('DONE_')).sort(),
    )
  })
})

describe('a slot', () => {
  it('keeps its state and its time when a transition is refused', async () => {
    const { host, clock } = stage()
    const slot = new Slot(1, { ...host, queue: 'test' })
    slot.moveTo('IDLE')
    const { since } = slot.status()
    await clock.advance(10)
    expect(() => slot.moveTo('TERMINATED')).toThrow(BullpenError)
    expect(slot.status()).toEqual({ slot: 1, state: 'IDLE', since, task: undefined })
    slot.moveTo('WORKING')
    expect(slot.status()).toMatchObject({ state: 'WORKING', since: since + 10 })
  })
})
