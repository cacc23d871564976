// Compares the tasks that have run with those that should have run once each, according to the ledger.
import type { Effect } from '../ledger/effects.ts'

export interface Runs {
  /** How many numbers have a task that has run. */
  readonly run: number
  /** How many of the expected numbers have no task that has run. */
  readonly missing: number
  /** How many tasks have run beyond one for each expected number. */
  readonly extra: number
}

/**
 * Counts the tasks of a queue that have run for each number. The ids of tasks begin with their queue. A task that was removed and added
 * again has the same id and begins with its first attempt, so each first attempt counts as a task.
 */
export function runsOf(effects: readonly Effect[], queue: string, expected: Iterable<number>): Runs {
  const own = effects.filter(({ id, of }) => of !== undefined && id.slice(0, id.lastIndexOf('-')) === queue)
  const ended = new Set(own.flatMap(({ what, of }) => (what === 'end' ? [of] : [])))
  const tasks = new Map<number, Set<string>>()
  let again = 0
  const firstAttempts = new Set<string>()
  for (const { what, id, of = 0, fencingToken } of own) {
    if (what !== 'start') continue
    tasks.set(of, (tasks.get(of) ?? new Set()).add(id))
    if (fencingToken === 1 && firstAttempts.has(id)) again++
    if (fencingToken === 1) firstAttempts.add(id)
  }
  const wanted = new Set(expected)
  const missing = [...wanted].filter((number) => !ended.has(number)).length
  const surplus = [...tasks].reduce((sum, [number, ids]) => sum + ids.size - (wanted.has(number) ? 1 : 0), 0)
  return { run: ended.size, missing, extra: surplus + again }
}
