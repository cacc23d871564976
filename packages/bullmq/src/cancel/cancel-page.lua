#!lua flags=allow-oom
-- Examines one page of a queue's unfinished tasks, and ends the waiting tasks that match a cancel rule.
--
-- KEYS[1]  leader       the highest fencing number of the queue's leaders
-- KEYS[2]  active
-- KEYS[3]  delayed
-- KEYS[4]  prioritized
-- KEYS[5]  lanes
-- KEYS[6]  wait
-- KEYS[7]  endReply     the caller's last reply
-- ARGV[1]  fencing      the leader's fencing number
-- ARGV[2]  base         the prefix of the queue's keys
-- ARGV[3]  progress     the prefix of the rules' progress
-- ARGV[4]  rulesText    the rules: a JSON array of `{id, task?, tag?, group?, before, at, reason, record}`, with the `reason` and the
--                       `record` that `endOf` returns (codec.ts)
-- ARGV[5]  place        the place to scan
-- ARGV[6]  from         the position to start at
-- ARGV[7]  before       the id of the task before that position
-- ARGV[8]  limit        how many tasks to examine
-- ARGV[9]  request      the id of this request
--
-- Returns `[from: string, before: string, matched: number[], ended: string[]] | null`: where the next page begins, which is '' at the end
-- of the place; the id of the task before that position, which is '' at the start of the place; how many tasks each rule has matched; and
-- the id and the name of each task that the script has ended. The reply is null if there is a newer leader. If the script ended tasks, a
-- second call with the same request returns the same reply, even after a newer leader has taken over.
--
-- The position is an index in a list, and a score in a sorted set; cancel-in-lanes.lua describes the position in the lanes. The id before
-- the position belongs to a task that no rule matches, so it shows where the scan must continue if other tasks have been added or removed
-- in the meantime.
local leader, active, delayed, prioritized = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lanes, wait, endReply = KEYS[5], KEYS[6], KEYS[7]
local fencing, base, progress, rulesText, place = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local from, before, limit, request = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
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
