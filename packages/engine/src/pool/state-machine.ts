// A state machine as a table: which state may follow which; anything else is an error that says so.
import { BullpenError } from '@bullpen/contract'

/** For each state, the states that may follow. An empty list ends the machine. */
export type Transitions<S extends string> = { readonly [From in S]: readonly S[] }

/** @throws BullpenError `illegal_transition`, naming the machine, both states and what may follow. */
export function assertTransition<S extends string>(machine: string, table: Transitions<S>, from: S, to: S): void {
  if (table[from].includes(to)) return
  const allowed = table[from].length === 0 ? 'nothing' : table[from].join(', ')
  throw new BullpenError(
    'illegal_transition',
    `${machine} can't go from ${from} to ${to}; ${allowed} may follow ${from}`,
  )
}
