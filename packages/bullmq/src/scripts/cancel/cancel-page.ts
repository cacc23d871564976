// Examines one page of a queue's unfinished tasks, and ends the waiting tasks that match a cancel rule.
import type { TaskId } from '@bullpen/contract'
import { listOf, noteLeft, prioritiesOf } from '../../internals/turns/lanes.ts'
import { FENCE, MATCHING_RULE, STORED_REPLY } from '../../store/scripts.ts'
import { END_WITHOUT_RUN } from '../includes/ended-tasks/end-without-run.ts'
import { REPLY_KEPT_MS } from '../run-until-answered.ts'
import { defineScript } from '../script.ts'

export interface CancelPage {
  /** Where the next page begins; '' at the end of the place. */
  readonly from: string
  /** The id of the task before that position; '' at the start of the place. */
  readonly before: string
  /** The number of tasks that each rule has matched. */
  readonly matched: readonly number[]
  readonly ended: readonly { readonly id: TaskId; readonly task: string }[]
}

/**
 * - KEYS: the queue's fencing number, active, delayed, prioritized, `lanes`, wait, the caller's last reply.
 * - ARGV: the leader's number, the prefix of the queue's keys, the prefix of the rules' progress, the rules, the place to scan,
 *   the position to start at, the id before that position, how many tasks to examine, the id of this request.
 *
 * Returns the page, or undefined if there is a newer leader. If the script ended tasks, a second call with the same request
 * returns the same page, even after a newer leader has taken over.
 *
 * Each rule is `{id, task?, tag?, before, at, reason, record}`, where `reason` and `record` are those of `endOf`.
 *
 * The position is an index in a list, and a score in a sorted set. The id before the position belongs to a task that no rule
 * matches, so it shows where the scan must continue if other tasks have been added or removed in the meantime.
 *
 * - The waiting list is scanned from its newest end. Workers take tasks from the other end, and new tasks push the rest further
 *   along, so the scan does not skip any task. If the task before the position has been taken, so have all older tasks, and the
 *   scan begins again with the newer ones.
 * - In a sorted set, the scan continues at the score if the task before the position is gone.
 * - In `active`, the script only counts tasks, because workers stop their own running tasks. This list is also scanned from its
 *   newest end. If the task before the position has ended, the scan can't tell where to continue. Every rule then counts as
 *   matching, so that another pass follows.
 */
export const cancelPage = defineScript({
  name: 'cancel-page',
  kind: 'frees',
  keys: ['leader', 'active', 'delayed', 'prioritized', 'lanes', 'wait', 'endReply'],
  args: ['fencing', 'base', 'progress', 'rulesText', 'place', 'from', 'before', 'limit', 'request'],
  lua: `${END_WITHOUT_RUN}${MATCHING_RULE}${FENCE}${STORED_REPLY}
local earlier = stored_reply(endReply, request)
if earlier then return earlier end
if is_deposed(leader, fencing) then return false end
local rules, limit = decode_json(rulesText), tonumber(limit)
local ends = ends_without_run(base, 'cancelled')
local matched, ended = {}, {}
for i = 1, #rules do matched[i] = 0 end

local call = redis.call
local function finish(id, i, name)
  local rule = rules[i]
  ends.finish(id, place, rule.at, rule.reason, rule.record)
  redis.call('HINCRBY', progress .. rule.id, 'ended', 1)
  matched[i] = matched[i] + 1
  ended[#ended + 1] = id
  ended[#ended + 1] = name
end

-- The index after the task before the position, or nil if that task is no longer in the list.
local function next_index(list)
  local index = tonumber(from == '' and '0' or from)
  if before == '' or redis.call('LINDEX', list, index - 1) == before then return index end
  local at = redis.call('LPOS', list, before)
  return at and at + 1
end

local function count_active()
  local start = next_index(active)
  if not start then
    for i = 1, #rules do matched[i] = matched[i] + 1 end
    return '', ''
  end
  local ids = redis.call('LRANGE', active, start, start + limit - 1)
  local last = before
  for _, id in ipairs(ids) do
    local i = matching_rule(base, rules, id)
    if i then matched[i] = matched[i] + 1 end
    last = id
  end
  if #ids < limit then return '', '' end
  return start + #ids, last
end

local function end_in_set(set)
  local rank = before ~= '' and redis.call('ZRANK', set, before)
  local page = rank and redis.call('ZRANGE', set, rank + 1, rank + limit, 'WITHSCORES')
    or redis.call('ZRANGEBYSCORE', set, from == '' and '-inf' or from, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  local score, kept = from, before
  for at = 1, #page, 2 do
    local id = page[at]
    local i, name = matching_rule(base, rules, id)
    if i then
      ends.call('ZREM', set, id)
      finish(id, i, name)
    else
      score, kept = page[at + 1], id
    end
  end
  if #page < 2 * limit then return '', '', #page / 2 end
  return score == '' and '-inf' or score, kept, #page / 2
end

-- Returns the next position, and how many tasks it has ended.
local function end_in_list(list)
  local start = next_index(list) or 0
  local ids = redis.call('LRANGE', list, start, start + limit - 1)
  local matching, kept = {}, before
  for offset, id in ipairs(ids) do
    local i, name = matching_rule(base, rules, id)
    if i then
      redis.call('LSET', list, start + offset - 1, 'bullpen:cancelled')
      matching[#matching + 1] = { id, i, name }
    else
      kept = id
    end
  end
  -- A single LREM removes all of them in one walk of the list.
  if #matching > 0 then redis.call('LREM', list, #matching, 'bullpen:cancelled') end
  for _, each in ipairs(matching) do finish(unpack(each)) end
  if #ids < limit then return '', '', #ids end
  start = start + #ids - #matching
  return start, start > 0 and kept or '', #ids
end

-- The position is the lane's number in the order of the lanes, 'l' or 'p' for its list or its tasks with a priority, and the position
-- there. The script looks at one lane after the other until it has examined as many tasks as it may.
local function end_in_lanes()
  local order, part, rest = string.match(from, '^([^ ]+) (%a) (.*)$')
  while limit > 0 do
    local lane, found = unpack(redis.call('ZRANGEBYSCORE', lanes, order or '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
    if not lane then return '', '' end
    if found ~= order then order, part, rest, before = found, 'l', '', '' end
    from = rest
    local ended_before = #ended
    local next_from, next_before, examined
    if part == 'l' then next_from, next_before, examined = end_in_list(${listOf('lane')})
    else next_from, next_before, examined = end_in_set(${prioritiesOf('lane')}) end
    local count = (#ended - ended_before) / 2
    if count > 0 then${noteLeft('lane', 'count')}
    end
    limit = limit - examined
    if next_from ~= '' then return order .. ' ' .. part .. ' ' .. next_from, next_before end
    rest, before = '', ''
    if part == 'l' then part = 'p' else order = '(' .. order end
  end
  return order .. ' ' .. part .. ' ', ''
end

local next_from, next_before
if place == 'active' then
  next_from, next_before = count_active()
elseif place == 'wait' then
  next_from, next_before = end_in_list(wait)
elseif place == 'lanes' then
  next_from, next_before = end_in_lanes()
else
  next_from, next_before = end_in_set(place == 'delayed' and delayed or prioritized)
end
ends.close()
local page = { tostring(next_from), next_before, matched, ended }
if #ended > 0 then store_reply(endReply, request, page, ${REPLY_KEPT_MS}) end
return page
`,
  answer(reply): CancelPage | undefined {
    if (reply === null) return undefined
    const [from, before, matched, flat] = reply as [string, string, number[], string[]]
    const ended = Array.from({ length: flat.length / 2 }, (_, i) => ({
      id: flat[2 * i] as TaskId,
      task: flat[2 * i + 1] ?? '',
    }))
    return { from, before, matched, ended }
  },
})
