#!lua flags=allow-oom
-- Examines one page of a queue's unfinished tasks, and ends the waiting tasks that match a cancel rule.
--
-- KEYS  leader, active, delayed, prioritized, lanes, wait, endReply
-- ARGV  fencing, base
-- ARGV  progress   the prefix of the rules' progress
-- ARGV  rulesText  the rules: a JSON array of `{id, task?, tag?, group?, before, at, reason, record}`, with the `reason` and the `record`
--                  that `endOf` returns (codec.ts)
-- ARGV  place      the place to scan
-- ARGV  from       the position to start at
-- ARGV  before     the id of the task before that position
-- ARGV  limit      how many tasks to examine
-- ARGV  request
--
-- Returns `[from: string, before: string, matched: number[], ended: string[]] | null`: where the next page begins, which is '' at the end
-- of the place; the id of the task before that position, which is '' at the start of the place; how many tasks each rule has matched; and
-- the id and the name of each task that the script has ended. The reply is null if there is a newer leader. If the script ended tasks, a
-- second call with the same request returns the same reply, even after a newer leader has taken over.
--
-- The position is an index in a list, and a score in a sorted set; cancel-in-lanes.lua describes the position in the lanes. The id before
-- the position belongs to a task that no rule matches, so it shows where the scan must continue if other tasks have been added or removed
-- in the meantime.
--- @include fence
--- @include stored-reply
--- @include cancel-in-place
--- @include cancel-in-lanes

local function scan(most)
  if place == 'active' then
    return count_in_active(active, from, before, most)
  elseif place == 'wait' then
    return cancel_in_list(wait, place, from, before, most)
  elseif place == 'lanes' then
    return cancel_in_lanes(lanes, from, before, most)
  end
  return cancel_in_set(place == 'delayed' and delayed or prioritized, place, from, before, most)
end

local earlier = stored_reply(endReply, request)
if earlier then
  return earlier
end
if is_deposed(leader, fencing) then
  return false
end
open_rules(decode_json(rulesText))
local next_from, next_before = scan(tonumber(limit))
note_drained_by_ends()
local page = { tostring(next_from), next_before, matched, ended }
if #ended > 0 then
  store_reply(endReply, request, page, REPLY_KEPT_MS)
end
return page
