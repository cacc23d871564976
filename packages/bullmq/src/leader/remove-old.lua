#!lua flags=allow-oom
-- Removes ended tasks whose retention is over. Every eighth end of an attempt also removes old tasks with the same status (ENDS_PER_REMOVAL
-- in store/moves.ts), so this script only has to remove tasks while few attempts end, and tasks that ended without an attempt.
--
-- KEYS  leader
-- ARGV  fencing, now
-- ARGV  retention  the queue's retention as JSON
-- ARGV  base
-- ARGV  limit      how many tasks to remove at most
--
-- Returns `number`: how many tasks were removed, which is 0 if there is a newer leader.
--- @include fence
--- @include remove-ended

if is_deposed(leader, fencing) then
  return 0
end
local removed = 0
for status, kept in pairs(cjson.decode(retention)) do
  local since = kept.ageMs and whole(now - kept.ageMs) or ''
  removed = removed + remove_ended(base, status, since, kept.count or '', limit - removed)
end
return removed
