// Computes the figures of the tasks and the workers that every drill has.
import { countBy, recoveries, restartsOf } from '../ledger/attempts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { p99 } from '../ledger/ranks.ts'
import { miscounted } from '../ledger/worker-metrics.ts'

export interface TaskFigures {
  readonly accepted: number
  /** Accepted tasks that have not ended. */
  readonly lost: number
  /** Tasks that were recorded as completed more than once. */
  readonly duplicated: number
  /** Completed tasks without a completion event. If there are any, `duplicated` is unknown. */
  readonly eventsMissed: number
  /** Tasks that ended in a status other than completed. */
  readonly failed: number
  /** Tasks whose side effect happened more than once. For receipts, every repeated delivery is counted. */
  readonly effectsRepeated: number
  /** Attempts beyond each task's first attempt, not including retries of failed attempts. */
  readonly restarted: number
  /** Counted attempts beyond each task's first attempt. In `exactness`, requested retries are not counted. */
  readonly attemptsUsed: number
  readonly interrupted: number
  /**
   * Time from an interruption to the task's next attempt. Infinite if there was none. Undefined if nothing was
   * interrupted.
   */
  readonly recoveryP99Ms: number | undefined
  /** Undefined if no worker was asked to shut down. */
  readonly exitSlowestMs: number | undefined
  readonly exitsNotZero: number
  /** The attempts by which the workers' metrics differ from the ledger. Undefined if there are no metrics. */
  readonly miscounted?: number | undefined
  /** Undefined if no attempt had to be signalled. */
  readonly signalSlowestMs?: number | undefined
  /**
   * Faults of an API process that had no pending request, or that stored no task while it got no replies, and faults of a worker that ran
   * no task or, in `exactness`, none that held a place of a limit without free places.
   */
  readonly faultsWithoutEffect?: number
  /** Keys and entries that are left in Redis and belong to nothing. Undefined if the drill has not looked for them. */
  readonly orphans?: number | undefined
  /** Tasks that the queue's totals do not account for, and repairs of its status index. */
  readonly unaccounted?: number
  /** Time from the enqueue of a task to its first start. In `fairness`, only the tasks of the other keys are counted. */
  readonly waitP50Ms?: number | undefined
  readonly waitP99Ms?: number | undefined
}

export function figuresOf(ledger: Ledger): TaskFigures {
  const { accepted, ends, completions, effects, interruptions, exits, counts, signals = [] } = ledger
  const starts = effects.filter(({ what }) => what === 'start')
  const timesEnded = countBy(effects.filter(({ what }) => what === 'end'))
  const completed = accepted.filter((id) => ends.get(id)?.status === 'completed')
  return {
    accepted: accepted.length,
    lost: accepted.filter((id) => !ends.has(id)).length,
    duplicated: count(completions.values(), (times) => times > 1),
    eventsMissed: completed.filter((id) => !completions.has(id)).length,
    failed: count(ends.values(), ({ status }) => status !== 'completed'),
    effectsRepeated: count(timesEnded.values(), (times) => times > 1),
    restarted: restartsOf(starts),
    attemptsUsed: [...ends.values()].reduce((sum, { attemptsMade }) => sum + Math.max(0, attemptsMade - 1), 0),
    interrupted: interruptions.length,
    recoveryP99Ms: p99(recoveries(interruptions, starts)),
    exitSlowestMs: exits.length === 0 ? undefined : Math.max(...exits.map(({ tookMs }) => tookMs)),
    exitsNotZero: count(exits, ({ code }) => code !== 0),
    miscounted: counts === undefined || counts.size === 0 ? undefined : miscounted(counts, effects, ends),
    signalSlowestMs: signals.length === 0 ? undefined : Math.max(...signals),
  }
}

function count<T>(values: Iterable<T>, matches: (value: T) => boolean): number {
  let found = 0
  for (const value of values) if (matches(value)) found++
  return found
}
