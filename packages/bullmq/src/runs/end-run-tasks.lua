#!lua flags=allow-oom
-- Records the ends of a pipeline run's tasks, and starts what may start now. Only the first end of each task counts, so that the script
-- can be repeated. Takes constant time for each task.
--
-- KEYS  base, meta, definition, tasks, inputs, early, results, errors, outbox
-- ARGV  id
-- ARGV  channels     the prefix of the channels
-- ARGV  incarnation  distinguishes the run from others that have had its id
-- ARGV[4...]  for each task, its stage, its position, the letter of its end and its value, which is '' if it has none
--
-- Returns `RunReply<false | null> | null`: null if there is no such run.
--- @type RunReply from ./run-change.ts
--- @include run

if run.incarnation ~= incarnation then
  return false
end
local now = millis()
for i = 4, #ARGV, 4 do
  end_run_task(tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], now)
end
return reply(now)
