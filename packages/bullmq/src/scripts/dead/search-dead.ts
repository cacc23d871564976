// Finds the dead tasks that match a filter, newest first, among a limited number of tasks.
import { MATCHING_DEAD } from '../includes/ended-tasks/matching-dead.ts'
import { RANK_IN_SET } from '../includes/rank-in-set.ts'
import { defineScript } from '../script.ts'

/** How many tasks are read from the set at a time. */
const READ_AT_ONCE = 100

export interface FoundDead {
  readonly ids: readonly string[]
  /** The last task that was examined, or undefined if no more tasks follow. */
  readonly last: { readonly id: string; readonly score: string } | undefined
}

/**
 * - KEYS: the set to search, which is that of the dead tasks or of one fingerprint.
 * - ARGV: the prefix of the queue's keys, the filter as JSON, the earliest and the latest time of death ('-inf' and '+inf' for
 *   none), the score and the id of the task after which the page begins ('' for both to begin with the newest task), how many tasks
 *   to find, how many tasks to examine.
 *
 * A position is a place in the set's order, so tasks that die or are retried between two pages do not move it. Examining a task
 * takes Redis about 2 µs.
 */
export const searchDead = defineScript({
  name: 'search-dead',
  kind: 'reads',
  keys: ['set'],
  args: ['base', 'filterText', 'earliest', 'latest', 'score', 'last', 'limit', 'scan'],
  lua: `${MATCHING_DEAD}${RANK_IN_SET}
local filter, limit, scan = decode_json(filterText), tonumber(limit), tonumber(scan)
local oldest = redis.call('ZCOUNT', set, '-inf', '(' .. earliest)
local rank = redis.call('ZCOUNT', set, '-inf', latest)
if last ~= '' then
  local after = rank_in(set, score, last)
  -- The position itself has been examined, if it is still there.
  if redis.call('ZSCORE', set, last) == score then after = after - 1 end
  rank = math.min(rank, after)
end
local found, examined, at_score, at_id = {}, 0, score, last
while rank > oldest and #found < limit and examined < scan do
  local page = redis.call('ZRANGE', set, math.max(oldest, rank - ${READ_AT_ONCE}), rank - 1, 'WITHSCORES')
  for i = #page - 1, 1, -2 do
    if #found == limit or examined == scan then break end
    at_id, at_score = page[i], page[i + 1]
    examined, rank = examined + 1, rank - 1
    if matches_dead(base, filter, at_id) then found[#found + 1] = at_id end
  end
end
return { found, rank > oldest and at_id or '', at_score }
`,
  answer(reply): FoundDead {
    const [ids, id, score] = reply as [string[], string, string]
    return { ids, last: id === '' ? undefined : { id, score } }
  },
})
