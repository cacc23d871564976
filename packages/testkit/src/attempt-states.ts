// Determines the states that a task's attempts went through from the task's events.
import type { AttemptEndState, AttemptState, TaskEvent } from '@bullpen/contract'
import { ATTEMPT_TRANSITIONS, assertTransition } from '@bullpen/engine/internal'

/**
 * Returns the states of all attempts in order, each starting with NEW. `handled` contains the fencing tokens of attempts that
 * reached their handler. An attempt that failed before its handler, because its input could not be read, also went through
 * IN_PROCESS.
 *
 * @throws BullpenError `illegal_transition` if the events do not follow the state machine.
 */
export function statesOf(events: readonly TaskEvent[], handled: ReadonlySet<number>): readonly AttemptState[] {
  return events.flatMap((event): readonly AttemptState[] => {
    if (event.event === 'attempt.started') return handled.has(event.fencingToken) ? ['NEW', 'IN_PROCESS'] : ['NEW']
    if (event.event !== 'attempt.ended' && event.event !== 'attempt.commit_refused') return []
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
