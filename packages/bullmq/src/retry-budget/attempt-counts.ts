// Counts the attempts of one process for the retry budgets, and encodes the argument of the steps that apply them
// (../store/lua/includes/end/retry-budget.lua).
import { type AttemptResult, BUDGET_WINDOW_S, intervalMs } from '@bullpen/engine/internal'

export interface AttemptCounts {
  /**
   * Counts an attempt. Returns the argument of the steps if they apply to the attempt: if its task is retried, or if its task
   * ends after a retry. Otherwise, returns ''. The argument contains the attempts that were counted since the last one.
   */
  count(result: AttemptResult): string
}

/** `monotonic` returns a time in ms that no change of the machine's clock affects. */
export function createAttemptCounts(monotonic: () => number): AttemptCounts {
  /** For each task name, how many attempts have ended in each second and were not sent yet. */
  const unsent = new Map<string, Map<number, number>>()

  const countFor = (task: string, second: number): Map<number, number> => {
    const counts = unsent.get(task) ?? new Map<number, number>()
    if (counts.size === 0) unsent.set(task, counts)
    const before = counts.get(second)
    counts.set(second, (before ?? 0) + 1)
    if (before !== undefined) return counts
    // The second has just begun, which is the time to forget the oldest one.
    for (const each of counts.keys()) if (each <= second - BUDGET_WINDOW_S) counts.delete(each)
    return counts
  }

  return {
    count({ event: { task, attempt }, verdict: { kind }, budget, totalTimeoutAt = 'none' }) {
      if (budget === undefined || !ENDS_ATTEMPT[kind]) return ''
      const second = Math.floor(monotonic() / 1_000)
      const counts = countFor(task, second)
      if (kind !== 'retrying' && attempt === 1) return ''
      unsent.delete(task)
      const sent = [...counts].map(([each, count]) => `${second - each}:${count}`)
      return `${task} ${budget.ratio} ${intervalMs(budget)} ${totalTimeoutAt} ${sent.join(' ')}`
    },
  }
}

/** Whether an attempt with this verdict counts towards its definition's attempts. */
const ENDS_ATTEMPT: Readonly<Record<AttemptResult['verdict']['kind'], boolean>> = {
  completed: true,
  retrying: true,
  dead: true,
  cancelled: false,
  expired: false,
  requeued: false,
  snoozed: false,
  lost: false,
}
