#!lua flags=allow-oom
-- Creates, changes or deletes a schedule, unless it has been written since it was read. A second call with the same arguments changes
-- nothing and returns the same. The arguments are described in schedule-write.lua.
--
-- KEYS[1]  schedules
-- KEYS[2]  scheduleTimes  when the leader has to look at them
-- ARGV[1]  name
-- ARGV[2]  expected
-- ARGV[3]  token
-- ARGV[4]  record
-- ARGV[5]  wakeAt
-- ARGV[6]  notBefore
--
-- Returns `WriteResult`
--- @type WriteResult from @bullpen/engine/internal
local schedules, scheduleTimes = KEYS[1], KEYS[2]
local name, expected, token, record, wakeAt, notBefore = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
--- @include schedule-write

local refused = refusal()
if refused then
  return refused
end
write_schedule()
return 'written'
