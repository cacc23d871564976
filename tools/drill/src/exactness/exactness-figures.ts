// Computes whether a limit was ever exceeded, whether a task has run again after it had completed, and how soon interrupted tasks ran again
// that need no permits.

import type { Figures } from '../figures/figures.ts'
import { recoveries } from '../ledger/attempts.ts'
import type { Effect } from '../ledger/effects.ts'
import type { End, Interruption } from '../ledger/ledger.ts'
import { p99 } from '../ledger/ranks.ts'
import { type Disturbance, type Limits, replay } from './occupancy.ts'

export interface ExactnessLedger {
  readonly effects: readonly Effect[]
  readonly ends: ReadonlyMap<string, End>
  readonly interruptions: readonly Interruption[]
  readonly limits: Limits
  readonly disturbance: Disturbance
  /** Returns whether the first attempt of the task with this number asks for a retry. */
  asksForRetry(task: number): boolean
}

type ExactnessFigures = Required<
  Pick<
    Figures,
    | 'aboveLimit'
    | 'ranUnlocked'
    | 'aboveLimitWithUnlocked'
    | 'limitsNotReached'
    | 'ranAfterEnd'
    | 'attemptsUsed'
    | 'recoveryWithoutPermitsP99Ms'
  >
>

export function exactnessFigures(ledger: ExactnessLedger): ExactnessFigures {
  const { effects, ends, interruptions, limits, disturbance, asksForRetry } = ledger
  const { most, mostOfAll, ranUnlocked } = replay(effects, limits, disturbance)
  const capacities = [...limits.capacities]
  const beyond = (held: ReadonlyMap<string, number>): number =>
    Math.max(0, ...capacities.map(([limit, places]) => (held.get(limit) ?? 0) - places))
  const retried = new Set(effects.flatMap(({ id, of }) => (of !== undefined && asksForRetry(of) ? [id] : [])))
  const starts = effects.filter(({ what }) => what === 'start')
  const needPermits = new Set(
    starts.flatMap(({ id, of }) => (of !== undefined && limits.needsOf(of).length > 1 ? [id] : [])),
  )
  const withoutPermits = interruptions.filter(({ id }) => !needPermits.has(id))
  return {
    aboveLimit: beyond(most),
    ranUnlocked,
    aboveLimitWithUnlocked: beyond(mostOfAll),
    limitsNotReached: capacities.filter(([limit, places]) => (most.get(limit) ?? 0) < places).length,
    ranAfterEnd: effects.filter(({ what, id, fencingToken }) => {
      const output = ends.get(id)?.output as { readonly fencingToken: number } | undefined
      return what === 'start' && output !== undefined && fencingToken > output.fencingToken
    }).length,
    attemptsUsed: [...ends].reduce(
      (sum, [id, { attemptsMade }]) => sum + Math.max(0, attemptsMade - (retried.has(id) ? 2 : 1)),
      0,
    ),
    recoveryWithoutPermitsP99Ms: p99(recoveries(withoutPermits, starts)),
  }
}
