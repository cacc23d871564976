#!lua flags=allow-oom
-- Creates, changes or deletes a schedule, unless it has been written since it was read. A second call with the same arguments changes
-- nothing and returns the same. The arguments are described in schedule-write.lua.
--
-- KEYS  schedules, scheduleTimes
-- ARGV  name, expected, token, record, wakeAt, notBefore
--
-- Returns `WriteResult`
--- @type WriteResult from @bullpen/engine/internal
--- @include schedule-write

local refused = refusal()
if refused then
  return refused
end
write_schedule()
return 'written'
