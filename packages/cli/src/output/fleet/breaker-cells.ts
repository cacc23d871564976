// Formats the state of a circuit breaker as the cells of a table.
import type { BreakerView } from '@bullpen/contract'
import type { Cell } from '../columns.ts'
import { plain, relativeTime } from '../format.ts'

/** The headings of {@link breakerCells}. The last column has remarks. */
export const BREAKER_HEADING = ['state', 'since', 'calls', 'failed', 'slow', ''] as const

export function breakerCells(breaker: BreakerView, now: number): Cell[] {
  const { state, mode, since, startsAt, calls, failures, slow, setBy } = breaker
  const remarks = [
    ...(mode === 'auto' ? [] : [`set to stay ${mode}`]),
    ...(setBy === undefined ? [] : [`set by ${plain(setBy.by)} ${relativeTime(setBy.at, now)}`]),
    ...(startsAt === undefined ? [] : [`next probe ${relativeTime(startsAt, now)}`]),
  ]
  const label = breakerLabel(state)
  return [
    state === 'closed' ? label : [state === 'open' ? 'red' : 'yellow', label],
    since === undefined ? '-' : relativeTime(since, now),
    ...(state === 'closed' ? [calls, failures, slow].map(String) : ['-', '-', '-']),
    remarks.join(', '),
  ]
}

export const breakerLabel = (state: BreakerView['state']): string => state.replace('_', '-')
