-- Scans a page of one list or sorted set for tasks that match a cancel rule. Each function returns the next position, the id of the task
-- before it, and how many tasks it has examined. The next position is '' at the end of the place.
--
-- count_in_active(list, from, before, limit)        counts the running tasks that match, which their workers stop. If the task before the
--                                                   position is no longer active, the scan can't tell where to continue. It then counts a
--                                                   match for every rule, so that another pass follows
-- cancel_in_list(list, place, from, before, limit)  ends the tasks that match. It scans the list from its newest end, like `active`.
--                                                   Workers take tasks from the other end, and new tasks push the rest further along, so
--                                                   the scan does not skip any task. If the task before the position has been taken, so
--                                                   have all older tasks, and the scan begins again at the newest end
-- cancel_in_set(set, place, from, before, limit)    the same in a sorted set. The scan continues at the score if the task before the
--                                                   position is gone
--- @include cancel-rules
--- @include leave-place

local CANCELLED_MARK = 'bullpen:cancelled'

-- The index after the task before the position, or nil if that task is no longer in the list.
local function next_index(list, from, before)
  local index = tonumber(from == '' and '0' or from)
  if before == '' or redis.call('LINDEX', list, index - 1) == before then
    return index
  end
  local at = redis.call('LPOS', list, before)
  return at and at + 1
end

local function count_in_active(list, from, before, limit)
  local start = next_index(list, from, before)
  if not start then
    note_all_matched()
    return '', '', 0
  end
  local ids = redis.call('LRANGE', list, start, start + limit - 1)
  for _, id in ipairs(ids) do
    note_match(id)
  end
  if #ids < limit then
    return '', '', #ids
  end
  return start + #ids, ids[#ids], #ids
end

-- Returns what end_match needs for the tasks that match, by their position among these ids, and the last id that does not match.
local function matches_among(ids, before)
  local matches, kept = {}, before
  for position, id in ipairs(ids) do
    matches[position] = match_of(id) or false
    kept = matches[position] and kept or id
  end
  return matches, kept
end

local function cancel_in_list(list, place, from, before, limit)
  local start = next_index(list, from, before) or 0
  local ids = redis.call('LRANGE', list, start, start + limit - 1)
  local matches, kept = matches_among(ids, before)
  local found = {}
  for position, match in ipairs(matches) do
    if match then
      redis.call('LSET', list, start + position - 1, CANCELLED_MARK)
      found[#found + 1] = match
    end
  end
  -- A single LREM removes all of them in one walk of the list.
  if #found > 0 then
    redis.call('LREM', list, #found, CANCELLED_MARK)
  end
  for _, match in ipairs(found) do
    end_match(match, place)
  end
  if #ids < limit then
    return '', '', #ids
  end
  start = start + #ids - #found
  return start, start > 0 and kept or '', #ids
end

-- Returns whether the task was still in the set: the end of a child may have let its parent start.
local function leave_set(set, place, id)
  if place == 'delayed' then
    return leave_delayed(base, id)
  end
  return redis.call('ZREM', set, id) == 1
end

local function cancel_in_set(set, place, from, before, limit)
  local rank = before ~= '' and redis.call('ZRANK', set, before)
  local page = rank and redis.call('ZRANGE', set, rank + 1, rank + limit, 'WITHSCORES')
    or redis.call('ZRANGEBYSCORE', set, from == '' and '-inf' or from, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  local ids, score = {}, from
  for at = 1, #page, 2 do
    ids[#ids + 1] = page[at]
  end
  local matches, kept = matches_among(ids, before)
  for position, match in ipairs(matches) do
    if not match then
      score = page[2 * position]
    elseif leave_set(set, place, ids[position]) then
      end_match(match, place)
    end
  end
  if #ids < limit then
    return '', '', #ids
  end
  return score == '' and '-inf' or score, kept, #ids
end
