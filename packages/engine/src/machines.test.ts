import { ATTEMPT_END_STATES, BullpenError } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { ATTEMPT_TRANSITIONS } from './attempt-machine.ts'
import { POOL_TRANSITIONS } from './pool-machine.ts'
import { assertTransition, type Transitions } from './state-machine.ts'

function reachable<S extends string>(table: Transitions<S>, from: S): Set<S> {
  const seen = new Set<S>([from])
  for (const state of seen) for (const next of table[state]) seen.add(next)
  return seen
}

describe('the machines', () => {
  it.each([
    ['attempt', ATTEMPT_TRANSITIONS],
    ['pool', POOL_TRANSITIONS],
  ] as const)('reaches every state of the %s from NEW, and none of them leads back', (_, table) => {
    const transitions: Transitions<string> = table
    expect([...reachable(transitions, 'NEW')].sort()).toEqual(Object.keys(table).sort())
    expect(Object.values(transitions).flat()).not.toContain('NEW')
  })

  it('lets nobody move an attempt on from its end', () => {
    for (const end of ATTEMPT_END_STATES) expect(ATTEMPT_TRANSITIONS[end]).toEqual([])
  })

  it('never overwrites a shutdown that went wrong', () => {
    expect(POOL_TRANSITIONS.TERMINATE_TIMEOUT).not.toContain('SHUTDOWN')
    expect(POOL_TRANSITIONS.RECOVER_ERR).toEqual([])
  })

  it('refuses what is not in the table, naming both states and what may follow', () => {
    expect(() => assertTransition('an attempt', ATTEMPT_TRANSITIONS, 'NEW', 'DONE_SUCCESS')).toThrow(
      expect.objectContaining({
        code: 'illegal_transition',
        message: expect.stringMatching(/NEW to DONE_SUCCESS; IN_PROCESS/),
      }),
    )
    expect(() => assertTransition('a pool', POOL_TRANSITIONS, 'SHUTDOWN', 'BG_RUNNING')).toThrow(BullpenError)
  })
})
