#!lua
-- Enqueues the task of a schedule's tick, and moves the schedule past the tick. A second call with the same arguments changes nothing and
-- returns the same. The first arguments are described in schedule-write.lua.
--
-- If a leader dies before the script runs, the next leader enqueues the task and moves the schedule. If a leader dies after the script has
-- run, both are done. Two leaders cannot both handle the tick, because the first one changes the token that the second one expects. If
-- Redis has lost the schedule's newest state but not the task, the script only moves the schedule.
--
-- KEYS  schedules, scheduleTimes, settings
-- ARGV  name, expected, token, record, wakeAt, notBefore, base
-- ARGV[8...]  the task (new-task.lua)
--
-- Returns `WriteResult`
--- @type WriteResult from @bullpen/engine/internal
--- @include schedule-write
--- @include new-tasks

local refused = refusal()
if refused then
  return refused
end
if redis.call('HEXISTS', settings, 'drain') == 1 then
  return 'draining'
end
local reply = add_tasks(8, #ARGV, false)[1]
if type(reply) == 'table' and reply[1] == 'error' then
  return redis.error_reply(reply[2])
end
write_schedule()
return 'written'
