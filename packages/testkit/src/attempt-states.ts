// The states that a task's attempts went through, as its events tell them.
import type { AttemptEndState, AttemptState, TaskEvent } from '@bullpen/contract'
import { ATTEMPT_TRANSITIONS, assertTransition } from '@bullpen/engine/internal'

/**
 * Attempt after attempt, each from NEW. What can't end without having been in process has been: a task that can't be read
 * fails before its handler is reached.
 *
 * @throws BullpenError `illegal_transition`: an engine that goes ways of its own.
 */
export function statesOf(events: readonly TaskEvent[], handled: ReadonlySet<number>): readonly AttemptState[] {
  return events.flatMap((event): readonly AttemptState[] => {
    if (event.event === 'attempt.started') return handled.has(event.fencingToken) ? ['NEW', 'IN_PROCESS'] : ['NEW']
    if (event.event !== 'attempt.ended') return []
    const skipped = !handled.has(event.fencingToken) && !endsUnstarted(event.state)
    assertTransition(
      'an attempt',
      ATTEMPT_TRANSITIONS,
      handled.has(event.fencingToken) || skipped ? 'IN_PROCESS' : 'NEW',
      event.state,
    )
    return skipped ? ['IN_PROCESS', event.state] : [event.state]
  })
}

function endsUnstarted(state: AttemptEndState): boolean {
  return (ATTEMPT_TRANSITIONS.NEW as readonly AttemptState[]).includes(state)
}
