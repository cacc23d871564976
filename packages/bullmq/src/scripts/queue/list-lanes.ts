// Reads one page of the tasks that wait in the lanes of a queue.
import { listOf, prioritiesOf } from '../../internals/turns/lanes.ts'
import { RANK_IN_SET } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/** After which task a page begins. The lanes are read in the order in which they received their first task. */
export interface LanePosition {
  /** The lane's number in that order. */
  readonly lane: number
  readonly last: string
  /** The task's score, if it has a priority, or else the number of the lane's tasks up to and including it. */
  readonly score?: number | undefined
  readonly passed?: number | undefined
}

export interface LanesPage {
  readonly ids: readonly string[]
  /** The position of the last of the ids. Undefined if there are none. */
  readonly at: LanePosition | undefined
}

/**
 * - KEYS: `lanes`.
 * - ARGV: the prefix of the queue's keys, the {@link LanePosition} ('' for each part of it that is missing), how many tasks to read.
 *
 * Returns that many tasks, or fewer if there are no more. Within a lane, the tasks are in the order in which they start. If the task
 * before the page has left its lane, the page begins as in `list-page` and `sorted-set-page`. Takes two commands for each lane.
 */
export const listLanes = defineScript({
  name: 'list-lanes',
  kind: 'reads',
  keys: ['lanes'],
  args: ['base', 'lane', 'last', 'score', 'passed', 'limit'],
  lua: `${RANK_IN_SET}
limit = tonumber(limit)
local found, at = {}, {}

local function read_list(name, last, passed)
  local list, first = ${listOf('name')}, 0
  if last ~= '' then
    if redis.call('LINDEX', list, -passed) == last then
      first = tonumber(passed)
    else
      local index = redis.call('LPOS', list, last, 'RANK', -1)
      first = index and redis.call('LLEN', list) - index or 0
    end
  end
  local ids = redis.call('LRANGE', list, -first - (limit - #found), -first - 1)
  for i = #ids, 1, -1 do
    found[#found + 1] = ids[i]
    first = first + 1
    at = { lane, ids[i], '', tostring(first) }
  end
end

local function read_priorities(name, last, score)
  local set = ${prioritiesOf('name')}
  local first = last == '' and 0 or rank_in(set, score, last)
  local page = redis.call('ZRANGE', set, first, first + limit - #found - 1, 'WITHSCORES')
  for i = 1, #page, 2 do
    found[#found + 1] = page[i]
    at = { lane, page[i], page[i + 1], '' }
  end
end

while #found < limit do
  local name, order = unpack(redis.call('ZRANGEBYSCORE', lanes, lane == '' and '-inf' or lane, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
  if not name then break end
  local is_same = order == lane
  lane = order
  local is_in_list = not is_same or score == ''
  if is_in_list then read_list(name, is_same and last or '', passed) end
  if #found < limit then read_priorities(name, is_in_list and '' or last, score) end
  if #found < limit then lane, last, score = '(' .. order, '', '' end
end
return { found, at }
`,
  answer(reply): LanesPage {
    const [ids, at] = reply as [string[], [string, string, string, string] | []]
    if (at.length === 0) return { ids, at: undefined }
    const [lane, last, score, passed] = at
    const position = score === '' ? { passed: Number(passed) } : { score: Number(score) }
    return { ids, at: { lane: Number(lane), last, ...position } }
  },
})
