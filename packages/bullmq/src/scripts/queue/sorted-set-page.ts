// Reads one page of a sorted set, beginning after a task that may have left the set in the meantime.

import { RANK_IN_SET } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

export interface ScoredId {
  readonly id: string
  readonly score: number
}

/**
 * - KEYS: the set.
 * - ARGV: the score and the id of the task after which the page begins ('' for both to begin at the start), how many tasks to read,
 *   '1' to read the set from its highest score.
 *
 * Returns that many tasks with their scores, or fewer at the end of the set. The page begins after the place that the given task
 * has in the set's order, whether or not the task is still there. The page therefore contains exactly the tasks that follow,
 * whatever has been added to or removed from the set in the meantime.
 */
export const sortedSetPage = defineScript({
  name: 'sorted-set-page',
  kind: 'reads',
  keys: ['set'],
  args: ['score', 'last', 'limit', 'descends'],
  lua: `${RANK_IN_SET}
local first = last == '' and 0 or rank_in(set, score, last)
if descends ~= '1' then return redis.call('ZRANGE', set, first, first + limit - 1, 'WITHSCORES') end
if last ~= '' then
  -- The tasks before the position remain, and the task at the position has been read, if it is still there.
  local at = redis.call('ZSCORE', set, last)
  if at and tonumber(at) == tonumber(score) then first = first - 1 end
  first = redis.call('ZCARD', set) - first
end
return redis.call('ZREVRANGE', set, first, first + limit - 1, 'WITHSCORES')
`,
  answer(reply): ScoredId[] {
    const flat = reply as string[]
    return Array.from({ length: flat.length / 2 }, (_, i) => ({
      id: flat[2 * i] ?? '',
      score: Number(flat[2 * i + 1]),
    }))
  },
})
