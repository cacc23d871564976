// Counts the dead tasks that match a filter, among a limited number of tasks.
import { MATCHING_DEAD } from '../includes/ended-tasks/matching-dead.ts'
import { RANK_IN_SET } from '../includes/rank-in-set.ts'
import { defineScript } from '../script.ts'

export interface DeadCount {
  readonly matching: number
  /** The last task that was examined, or undefined if no more tasks follow. */
  readonly last: { readonly id: string; readonly score: string } | undefined
}

/**
 * - KEYS: the set to search, which is that of the dead tasks or of one fingerprint.
 * - ARGV: the prefix of the queue's keys, the filter as JSON, the earliest and the latest time of death ('-inf' and '+inf' for
 *   none), the score and the id of the task after which the count begins ('' for both to begin with the oldest task), how many tasks
 *   to examine.
 *
 * If the filter is empty, the script counts all tasks at once, in O(log n).
 */
export const countMatchingDead = defineScript({
  name: 'count-matching-dead',
  kind: 'reads',
  keys: ['set'],
  args: ['base', 'filterText', 'earliest', 'latest', 'score', 'last', 'scan'],
  lua: `${MATCHING_DEAD}${RANK_IN_SET}
local filter = decode_json(filterText)
if next(filter) == nil then return { redis.call('ZCOUNT', set, earliest, latest), '', '' } end
local first = last == '' and redis.call('ZCOUNT', set, '-inf', '(' .. earliest) or rank_in(set, score, last)
local beyond = redis.call('ZCOUNT', set, '-inf', latest)
local page = redis.call('ZRANGE', set, first, math.min(first + scan, beyond) - 1, 'WITHSCORES')
local matching = 0
for i = 1, #page, 2 do
  if matches_dead(base, filter, page[i]) then matching = matching + 1 end
end
if first + scan >= beyond then return { matching, '', '' } end
return { matching, page[#page - 1], page[#page] }
`,
  answer(reply): DeadCount {
    const [matching, id, score] = reply as [number, string, string]
    return { matching, last: id === '' ? undefined : { id, score } }
  },
})
