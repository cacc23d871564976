// Examines whether many tasks of a queue have died lately, and names the most frequent kinds of their errors.
import { formatDuration } from '@bullpen/contract'
import type { KindOfDeath, QueueFacts } from './facts.ts'
import { ofEach } from './queue-checks.ts'

/** Deaths before this time are not growth, in ms. */
export const RECENT_ENDS_MS = 600_000
/** Fewer deaths than this, or fewer than one in 100 of the tasks that have ended, are no finding. */
const MANY_DEATHS = 10
const ONE_OF_ENDED = 100
const NAMED_KINDS = 3

export const deadTasks = ofEach(({ queue, recentEnds }) => {
  const { dead, completed, kinds } = recentEnds
  if (!isGrowth(recentEnds)) return []
  const [first] = mostFrequent(kinds)
  const shown = first === undefined ? '' : ` --fingerprint ${first.fingerprint}`
  return {
    problem: `${dead} tasks of ${queue} have died within the last ${formatDuration(RECENT_ENDS_MS)}, and ${completed} have completed${kindsText(kinds)}`,
    advice: `'bullpen dead list --queue ${queue}${shown}' shows them; fix the cause before you retry them`,
  }
})

function isGrowth({ dead, completed }: QueueFacts['recentEnds']): boolean {
  return dead >= MANY_DEATHS && dead * ONE_OF_ENDED >= dead + completed
}

function mostFrequent(kinds: readonly KindOfDeath[]): readonly KindOfDeath[] {
  return kinds.filter(({ count }) => count > 0).toSorted((a, b) => b.count - a.count)
}

function kindsText(kinds: readonly KindOfDeath[]): string {
  const all = mostFrequent(kinds)
  const named = all
    .slice(0, NAMED_KINDS)
    .map(({ fingerprint, code, message, count }) => `${count} with ${code} (${fingerprint}) ${message}`.trimEnd())
  if (named.length === 0) return ''
  const others = all.length - named.length
  return `; ${[...named, ...(others === 0 ? [] : [`${others} more ${others === 1 ? 'kind' : 'kinds'} of errors`])].join(', ')}`
}
