// states.md names every state and reason, and for each row a test that is really there.
import { ATTEMPT_END_STATES, END_REASONS, POOL_STATES, SLOT_STATES } from '@bullpen/contract/internal'
import { describe, expect, it } from 'vitest'
import { rows, section } from './markdown-tables.ts'

const table = (heading: string): string[][] => rows(section('states.md', heading))

describe('docs/states.md', () => {
  it('has a cause for every end of an attempt, and for every reason under its own state', () => {
    const shown = table('Attempts').map(([, state, reason]) => `${state} ${reason}`)
    for (const [state, reasons] of Object.entries(END_REASONS)) {
      for (const reason of reasons) expect(shown).toContain(`${state} ${reason}`)
    }
    const states = table('Attempts').map(([, state]) => state)
    for (const state of ATTEMPT_END_STATES) expect(states).toContain(state)
  })

  it('has a cause for every state of a worker, and of a pool', () => {
    const statesOf = (heading: string) => new Set(table(heading).map(([, state]) => state))
    for (const state of SLOT_STATES) expect(statesOf('Workers')).toContain(state)
    for (const state of POOL_STATES) expect(statesOf('Pools')).toContain(state)
  })

  it('names all of goapp’s eleven failures', () => {
    expect(new Set(table('Where goapp fails').map(([number]) => Number(number)))).toEqual(
      new Set(Array.from({ length: 11 }, (_, i) => i + 1)),
    )
  })
})
