// Represents state machines as tables that list, for each state, the states that may follow it.
import { BullpenError } from '@bullpen/contract'

/** An empty list marks a final state. */
export type Transitions<S extends string> = { readonly [From in S]: readonly S[] }

/**
 * Checks that the table allows the transition.
 *
 * @throws BullpenError `illegal_transition`. The message names the machine, both states and the states that may follow.
 */
export function assertTransition<S extends string>(machine: string, table: Transitions<S>, from: S, to: S): void {
  if (table[from].includes(to)) return
  const allowed = table[from].length === 0 ? `${from} is final` : `only ${table[from].join(', ')} may follow`
  throw new BullpenError('illegal_transition', `${machine} cannot go from ${from} to ${to}; ${allowed}`)
}
